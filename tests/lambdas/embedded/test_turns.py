import asyncio
from contextlib import AsyncExitStack

import pytest

from daskscope_lambdas.embedded.turns import AT_ONCE, WAITING, CrowdedError, Turns


async def wait_in_line(turns: Turns, authorization: str, told: list[str]) -> None:
    async with turns.turn(authorization):
        told.append(authorization)


@pytest.mark.asyncio
async def test_a_token_has_so_many_turns_at_once_and_so_many_places_to_wait():
    turns, told = Turns(), list[str]()
    async with AsyncExitStack() as taken:
        for _ in range(AT_ONCE):
            await taken.enter_async_context(turns.turn("Bearer a"))
        waiting = [asyncio.create_task(wait_in_line(turns, "Bearer a", told)) for _ in range(WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(CrowdedError):
            await wait_in_line(turns, "Bearer a", told)
        await wait_in_line(turns, "Bearer b", told)
        assert told == ["Bearer b"]
    await asyncio.gather(*waiting)
    assert told.count("Bearer a") == WAITING


@pytest.mark.asyncio
async def test_nothing_is_kept_of_a_token_that_has_nothing_here():
    turns = Turns()
    for n in range(100):
        await wait_in_line(turns, f"Bearer {n}", [])
    with pytest.raises(ZeroDivisionError):
        async with turns.turn("Bearer a"):
            raise ZeroDivisionError
    assert not turns._lines
