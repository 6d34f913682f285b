"""Child processes that never outlive their parent's work, also when Ctrl-C comes at an awkward moment."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

STOP_S = 10
"""How long a child may take to stop before it is killed."""


class Children:
    """Starts Python processes, each with a log file in `logs` and a process group of its own; ends all on leaving.

    Inside, SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt, but never between a child's start and its being noted,
    nor while the children are stopped. Main thread only.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._children: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._held = self._pending = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Children:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held = True
        try:
            self.stop()
        finally:
            for number, handler in self._before.items():
                signal.signal(number, handler)
        if self._pending and kind is None:
            raise KeyboardInterrupt

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """`python -m` with these arguments; its output goes to the log of this name."""
        self._held = True
        try:
            with (self._logs / f"{name}.log").open("wb") as log:
                child = subprocess.Popen(  # noqa: S603 - our own programs
                    [sys.executable, "-m", *arguments],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
            self._children.append((name, child))
        finally:
            self._held = False
        if self._pending:
            self._pending = False  # told once: leaving is not interrupted again by the same signal
            raise KeyboardInterrupt
        return child

    def stop(self) -> None:
        """Ask all to stop, the last one first, and kill what does not."""
        for _, child in reversed(self._children):
            if child.poll() is None:
                child.terminate()
            try:
                child.wait(STOP_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            # What a child left in its group, if it could not clear up itself.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        self._children.clear()

    def check(self) -> None:
        """Raises RuntimeError, with the end of its log, if a child has ended."""
        for name, child in self._children:
            if child.poll() is not None:
                head = f"The {name} ended with exit code {child.returncode}. Its last words:"
                raise RuntimeError("\n".join([head, *self._log(name)]))

    def words(self) -> list[str]:
        """The end of each child's log."""
        return [line for name, _ in self._children for line in (f"The {name} says:", *self._log(name))]

    def _log(self, name: str) -> list[str]:
        return (self._logs / f"{name}.log").read_text(errors="replace").splitlines()[-20:]

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self._held:
            self._pending = True
        else:
            raise KeyboardInterrupt
