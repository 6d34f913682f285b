"""A function as Lambda runs it: in a process of its own, one event at a time, within a time; replaced when it dies."""

from __future__ import annotations

import asyncio
import faulthandler
import importlib
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

logger = logging.getLogger("daskscope.serve")

Handler = Callable[[dict[str, Any], object], Any]


class FunctionDiedError(Exception):
    """The process ended while it worked on the event: killed, out of memory, or over its time."""


@dataclass(frozen=True, slots=True)
class Context:
    """What of Lambda's context the functions may use."""

    function_name: str
    aws_request_id: str


class Function:
    """`await function(event)` runs `handler` of the module `target`; at most `processes` events at once."""

    def __init__(self, target: str, processes: int = 1, timeout_s: float = 30) -> None:
        self._target, self._processes, self._timeout_s = target, processes, timeout_s
        self._executor: ProcessPoolExecutor | None = None

    def warm(self) -> None:
        """Start a process now rather than at the first event."""
        self._pool().submit(_nothing)

    async def __call__(self, event: dict[str, Any]) -> Any:
        """The handler's answer. Raises FunctionDiedError, or what the handler raised.

        If the process ended, maybe before it saw the event, a fresh one gets it once more, as Lambda itself may do;
        so a handler must bear the same event twice. Not so after its time was up: it would only last as long again.
        """
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        try:
            return await self._run(event)
        except FunctionDiedError:
            if loop.time() - began_at >= self._timeout_s:
                raise
            logger.warning("A process of %s ended; its event goes to a fresh one.", self._target)
        return await self._run(event)

    async def _run(self, event: dict[str, Any]) -> Any:
        executor = self._pool()
        try:
            return await asyncio.wrap_future(executor.submit(_invoke, event, self._timeout_s))
        except BrokenProcessPool as error:
            if self._executor is executor:
                self._executor = None
                executor.shutdown(wait=False)
            raise FunctionDiedError(f"The process of {self._target} ended while it worked.") from error

    def close(self) -> None:
        """Take no more events; idle processes end now, a busy one when it is done or ended from outside."""
        executor, self._executor = self._executor, None
        if executor:
            executor.shutdown(wait=False, cancel_futures=True)

    def _pool(self) -> ProcessPoolExecutor:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                self._processes, multiprocessing.get_context("spawn"), _enter, (self._target,)
            )
        return self._executor


def log_plainly() -> None:
    """One line a record on stderr: a person reads it."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    found = logging.getLogger("daskscope")
    found.handlers[:] = [handler]
    found.propagate = False


_handler: Handler | None = None


def _enter(target: str) -> None:
    """The start of a process. Ctrl-C reaches it too: the server says when it ends, or the server's own end does."""
    global _handler
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True, name="end-with-parent").start()
    log_plainly()
    _handler = importlib.import_module(target).handler


def _end_with(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)


def _nothing() -> None:
    pass


def _invoke(event: dict[str, Any], timeout_s: float) -> Any:
    assert _handler
    # The watchdog is a C thread: it ends the process also when a query holds the interpreter.
    faulthandler.dump_traceback_later(timeout_s, exit=True)
    try:
        return _handler(event, Context(_handler.__module__, uuid.uuid4().hex))
    finally:
        faulthandler.cancel_dump_traceback_later()
