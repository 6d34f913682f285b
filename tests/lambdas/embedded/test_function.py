import os
import signal
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from daskscope_lambdas.embedded.function import Function, FunctionDiedError

HANDLER = """
import os, signal
from pathlib import Path

def handler(event, context):
    with Path(event["log"]).open("a") as log:
        log.write(f"{os.getpid()}\\n")
    if len(Path(event["log"]).read_text().split()) <= event.get("deaths", 0):
        os.kill(os.getpid(), signal.SIGKILL)
    if event.get("stuck"):
        signal.pause()
    return os.getpid()
"""


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "mortal_handler.py").write_text(textwrap.dedent(HANDLER))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])  # a spawned process gets it too
    return "mortal_handler"


@pytest.fixture
def function(target: str) -> Iterator[Function]:
    made = Function(target)
    yield made
    made.close()


@pytest.mark.asyncio
async def test_a_process_killed_while_idle_costs_nobody_an_answer(function: Function, tmp_path: Path):
    event = {"log": str(tmp_path / "log")}
    first = await function(event)
    os.kill(first, signal.SIGKILL)
    assert await function(event) != first


@pytest.mark.asyncio
async def test_an_event_that_lost_its_process_runs_once_more_and_not_twice(function: Function, tmp_path: Path):
    assert await function({"log": str(tmp_path / "once"), "deaths": 1})
    with pytest.raises(FunctionDiedError):
        await function({"log": str(tmp_path / "killer"), "deaths": 9})
    assert len((tmp_path / "killer").read_text().split()) == 2
    assert await function({"log": str(tmp_path / "next")})


@pytest.mark.asyncio
async def test_what_took_all_its_time_is_not_given_as_much_again(target: str, tmp_path: Path):
    function = Function(target, timeout_s=0.2)
    try:
        with pytest.raises(FunctionDiedError):
            await function({"log": str(tmp_path / "log"), "stuck": True})
    finally:
        function.close()
    assert len((tmp_path / "log").read_text().split()) == 1
