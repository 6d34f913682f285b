"""Processes that die amid their work: by SIGKILL at the n-th step of the interpreter, or amid a write to disk.

A step is a call or return of any function, of Python or of C: between any two of them. A child starts as a fork of a
process that has imported what it needs, so that a death costs milliseconds.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

NEVER = 1 << 62

_PRELOADED = [
    "daskscope_lambdas.adapters.local",
    "daskscope_lambdas.adapters.aws",
    "daskscope_lambdas.service.compact",
    "daskscope_lambdas.service.gather",
    "daskscope_lambdas.service.batch",
    "tests.faults.killed",
]


class Dying:
    """Counts the steps of `work` and ends the process at one of them."""

    def __init__(self, at: int) -> None:
        self._at, self._steps = at, 0

    def __call__(self, work: Callable[[], object]) -> int:
        """How many steps it took, if it lived to tell."""
        sys.setprofile(self._step)
        try:
            work()
        finally:
            sys.setprofile(None)
        return self._steps

    def _step(self, _frame: object, _event: str, _argument: object) -> None:
        self._steps += 1
        if self._steps == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


def die_amid_writes(after_bytes: int) -> None:
    """From now on the kernel ends this process where a file is to grow over so many bytes: the first of them are
    there."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (after_bytes, resource.RLIM_INFINITY))


def outcome(act: Callable[..., Any], *args: Any) -> Any:
    """What `act(*args)` returns, in a process of its own; None if that was killed. Raises what it raised."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    told, tells = context.Pipe(duplex=False)
    child = context.Process(target=_act, args=(tells, act, args), daemon=True)
    child.start()
    tells.close()
    try:
        returned, answer = told.recv()
    except EOFError:
        child.join()
        assert child.exitcode in (-signal.SIGKILL, -signal.SIGXFSZ), child.exitcode
        return None
    finally:
        child.join()
        child.close()
        told.close()
    if not returned:
        raise answer
    return answer


def _act(tells: Connection, act: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        answer = True, act(*args)
    except Exception as error:
        answer = False, error
    tells.send(answer)
