"""What Dask's own lines show of users' objects does not leave: by Dask's sources, and by real failures."""

from __future__ import annotations

import ast
import asyncio
import importlib
import logging
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from distributed.comm.utils import to_frames
from distributed.protocol.serialize import Serialize
from packaging.specifiers import SpecifierSet
from tornado.ioloop import IOLoop

from daskscope.agent.lines import Lines
from daskscope.agent.tap import Tap
from daskscope.agent.texts import text_of
from daskscope.agent.withheld import LEFT_OUT, OPENINGS
from tests.plugin.rig import Cluster, until

CANARY = "canary-4711"

TEMPLATES = [(name, beginning) for name, known in OPENINGS.items() for beginning in known] + [LEFT_OUT]


@cache
def literals(module: str) -> list[str]:
    """All texts in the source of a module or package, that of f-strings up to their first value."""
    file = importlib.import_module(module).__file__
    assert file is not None
    files = list(Path(file).parent.glob("*.py")) if file.endswith("__init__.py") else [Path(file)]
    nodes = [node for source in files for node in ast.walk(ast.parse(source.read_text()))]
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


MODULES = {
    "tornado.application": "tornado.ioloop",
    "distributed.worker.state_machine": "distributed.worker_state_machine",
}


ONLY = {"Client %s receives message": ">=2026", "Client receives message": "<2025", "Detected different": ">=2026"}
"""Templates that not all releases have, and those that surely do."""


def has(beginning: str) -> bool:
    """Whether the Dask that is installed is to have this template."""
    releases = next((releases for start, releases in ONLY.items() if beginning.startswith(start)), "")
    return version("distributed") in SpecifierSet(releases)


@pytest.mark.parametrize(("name", "beginning"), [(name, beginning) for name, beginning in TEMPLATES if has(beginning)])
def test_each_template_is_dask_s_still(name: str, beginning: str) -> None:
    assert any(text.startswith(beginning) for text in literals(MODULES.get(name, name)))


class Unserializable:
    """Its text is the user's; it cannot be pickled, and pickle shows it as it says so."""

    def __repr__(self) -> str:
        return CANARY

    def __reduce__(self) -> Any:
        raise TypeError(f"Can't pickle {self!r}")


@pytest.fixture
def heard() -> Iterator[list[tuple[str, str, str]]]:
    """Logger, template and text of what is heard from DEBUG on in this process."""
    found: list[tuple[str, str, str]] = []

    def hear(record: logging.LogRecord) -> None:
        found.append((record.name, record.getMessage(), text_of(record)))

    tap = Tap(logging.DEBUG, hear)
    tap.attach()
    yield found
    tap.detach()


@pytest.mark.asyncio
async def test_a_function_s_arguments_do_not_leave_with_client_run(
    cluster: Cluster, heard: list[tuple[str, str, str]]
) -> None:
    with pytest.raises(ZeroDivisionError):
        await cluster.client.run(lambda given: 1 / 0, CANARY)
    ((message, text),) = [(m, t) for _, m, t in heard if m.startswith("Run Failed")]
    assert CANARY in message
    assert text == "Run Failed (left out: the function's arguments)"


@pytest.mark.asyncio
async def test_a_result_that_cannot_be_sent_does_not_leave_by_a_line(
    cluster: Cluster, heard: list[tuple[str, str, str]]
) -> None:
    with pytest.raises(TypeError):
        await cluster.client.submit(Unserializable)
    (worker,) = cluster.workers
    with pytest.raises(TypeError):  # as it would be sent to another worker
        await to_frames({"data": Serialize(next(iter(worker.data.values())))}, on_error="raise")
    assert sum(CANARY in message for _, message, _ in heard) >= 3, "Dask shows it"
    assert not [text for _, _, text in heard if CANARY in text]
    told = {text for _, _, text in heard}
    assert "Failed to serialize (left out: the object; its traceback shows it, too)" in told
    assert "Failed to Serialize (left out: its traceback shows the object)" in told
    assert "('Could not serialize object of type... (left out: what cannot be pickled)" in told


@pytest.mark.asyncio
async def test_whole_messages_do_not_leave(cluster: Cluster, heard: list[tuple[str, str, str]]) -> None:
    scheduler: Any = cluster.scheduler
    ((client, stream),) = scheduler.client_comms.items()
    await cluster.client.scheduler_comm.comm.write([{"op": "", "given": CANARY}])
    await until(lambda: [1 for _, message, _ in heard if message.startswith("odd message")])
    stream.comm.abort()
    scheduler.report({"op": "task-erred", "given": CANARY}, client=client)
    shown = [text for _, message, text in heard if CANARY in message]
    assert {text.partition("\n")[0] for text in shown} >= {
        "odd message (left out: the message)",
        "Closed comm %r while trying to write (left out: the message)",
    }
    assert not [text for text in shown if CANARY in text]


@pytest.mark.asyncio
async def test_a_callback_s_arguments_do_not_leave_and_its_traceback_does(heard: list[tuple[str, str, str]]) -> None:
    def fail(_: str) -> None:
        raise ValueError("its own text")

    asyncio.get_running_loop().call_soon(fail, CANARY)
    IOLoop.current().add_callback(fail, CANARY)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    told = {name: text for name, message, text in heard if CANARY in message}
    assert set(told) == {"asyncio", "tornado.application"}
    for text in told.values():
        assert text.startswith("Exception in callback")
        assert "(left out: the callback with its arguments)\nTraceback (most recent call last):" in text
        assert text.endswith("ValueError: its own text")
        assert CANARY not in text


def line(name: str, template: str, *args: object, **more: Any) -> str:
    return text_of(logging.LogRecord(name, logging.ERROR, "file.py", 1, template, args, more.get("exc_info")))


@pytest.mark.parametrize(("name", "beginning"), TEMPLATES)
def test_of_each_template_nothing_but_its_opening_leaves(name: str, beginning: str) -> None:
    template = beginning + f" {CANARY}"
    made = logging.LogRecord(name, logging.ERROR, "file.py", 1, template, (), None)
    if (name, beginning) == LEFT_OUT:
        lines = Lines(lambda _: None)
        lines.hear(made)
        assert lines.take() == ([], 0)
    else:
        text = text_of(made)
        assert text.startswith(beginning.rstrip(" (:\n"))
        assert CANARY not in text
    assert CANARY in line("mine", template), "the user's own words are the user's"
    assert CANARY in line(name, f"else: {CANARY}")


def test_a_failure_of_pickle_is_cut_wherever_dask_tells_it() -> None:
    told = f"broadcast to tcp://a failed: TypeError: ('Could not serialize object of type X', '{CANARY}')"
    assert line("distributed.scheduler", told) == (
        "broadcast to tcp://a failed: TypeError: ('Could not serialize object of type... "
        "(left out: what cannot be pickled)"
    )
    try:
        raise ValueError("while sending") from TypeError(f"Can't pickle <{CANARY}>: it's not found")
    except ValueError:
        text = line("distributed.core", "Exception while handling op %s", "get_data", exc_info=sys.exc_info())
    assert text == "Exception while handling op get_data... (left out: what cannot be pickled)"
    assert CANARY in line("mine", told)
