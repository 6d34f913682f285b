"""Keys with objects of the user's in them: told by their types, and nothing of the objects' own code is run.

Dask refuses such a key for what is asked for, and takes it for what that depends on; its older releases refuse both.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import Any

import dask.config
import pytest
from distributed.scheduler import KilledWorker

from daskscope import wire
from daskscope.collect.exceptions import OBJECT_KEY
from tests.plugin.rig import TAKES_ANY_KEY, Cluster, Look, boom, group_rows, inc, look_at, running, until

pytestmark = [pytest.mark.asyncio, pytest.mark.skipif(not TAKES_ANY_KEY, reason="this release refuses such keys")]

SAID = "swordfish"
numbers = itertools.count()
called: Counter[str] = Counter()


class Part:
    """A part of a key, whose texts tell what is in it."""

    def __init__(self, told: str) -> None:
        called["__init__"] += 1
        self.told = told

    def __reduce__(self) -> tuple[type[Part], tuple[str]]:
        return Part, (self.told,)

    def __hash__(self) -> int:
        return hash(self.told)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and other.told == self.told

    def __lt__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        called["__repr__"] += 1
        return f"Part({self.told})"

    def __str__(self) -> str:
        called["__str__"] += 1
        return self.told

    def __format__(self, how: str) -> str:
        called["__format__"] += 1
        return self.told


def message_of(look: Look) -> wire.Message:
    """With nothing of any Part's own called while it was made, but to find it in a dict."""
    called.clear()
    message = look.watch._message("running", None)
    assert not called
    assert not look.watch.readers.attempt.unreadable, "no reader failed"
    assert SAID.encode() not in wire.encode(message)
    return message


async def result_of(graph: dict[Any, Any], key: Any, cluster: Cluster) -> Any:
    client: Any = cluster.client
    asked = f"asked-{next(numbers)}"
    return await client.get({**graph, asked: (inc, key)}, asked, sync=False)


async def test_a_group_and_a_failure_are_told_by_the_types_in_their_keys() -> None:
    async with running() as cluster:
        look = await look_at(cluster.scheduler, tasks=True, events=("*",))
        first, second = (Part(SAID), 0), ("loading", Part(SAID))
        with pytest.raises(ValueError, match="no 2"):
            await result_of({first: (inc, 1), second: (boom, first)}, second, cluster)
        message = message_of(look)
        assert {row["name"] for row in group_rows(message)} == {"<Part>", "loading", "asked"}
        (family,) = message.exceptions
        assert (family.key, family.prefix, family.type, family.count) == ("<tuple>", "loading", "ValueError", 1)
        assert family.group == next(row["no"] for row in group_rows(message) if row["name"] == "loading")


async def test_a_task_that_died_with_its_worker_is_told_without_its_key() -> None:
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        async with running() as cluster:
            look = await look_at(cluster.scheduler, logs=None)  # Dask logs the key of such a task
            dask_there, address, key = cluster.scheduler, cluster.workers[0].address, ("sleeping", Part(SAID))
            result = asyncio.ensure_future(result_of({key: (asyncio.sleep, 60)}, key, cluster))
            await until(lambda: dask_there.workers[address].processing)
            dask_there.stream_comms[address].abort()
            with pytest.raises(KilledWorker):
                await result
            message = message_of(look)
            (family,) = message.exceptions
            assert (family.origin, family.type) == ("scheduler", "KilledWorker")
            assert (family.text, family.key) == (f"KilledWorker: {OBJECT_KEY}", "<tuple>")
            assert [death.processing for death in message.deaths] == [["<tuple>"]]


async def test_what_python_itself_has_a_text_for_is_told_as_it_is() -> None:
    async with running() as cluster:
        look = await look_at(cluster.scheduler)
        keys = [("loading", 1, None, True, ("x", 0.5)), (3, "x")]
        for key in keys:
            with pytest.raises(ValueError, match="no 1"):
                await result_of({key: (boom, 1)}, key, cluster)
        message = look()
    assert {family.key for family in message.exceptions} == {str(key) for key in keys}
    assert {row["name"] for row in group_rows(message)} == {"loading", "3", "asked"}
