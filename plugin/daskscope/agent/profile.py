"""What a worker spends its time in: how often each stack of functions was met, told once an interval.

Dask's own profile cannot answer that: `Worker.trigger_profile` (2024.1 to 2026.8) never counts the innermost function
of a stack, so of several functions called by one nobody can say which took the time. So a thread of ours looks at the
task threads itself, five times more rarely than Dask does, and not from the worker's event loop. Where Dask's
profiling is switched off (`distributed.worker.profile.enabled`), so is this.
"""

from __future__ import annotations

import re
import sys
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

import dask.config
from dask.utils import key_split

if TYPE_CHECKING:
    from distributed import Worker

SAMPLE_S = 0.05
"""From one look to the next; doubled while looking costs more than MAX_SHARE."""
MAX_SAMPLE_S = 1.6
MAX_SHARE = 0.005
"""Of a core: CPU time of the thread over time."""
MAX_STACKS, MAX_DEPTH = 500, 64
"""Of a payload. Of a deeper stack the outermost and the innermost frames stay, with OMITTED between: its root joins it
to the other stacks, and its leaf is what took the time."""
OMITTED = "..."
MAX_WALK = 1000
"""Frames looked at of one stack."""
MAX_KEPT, MAX_PLACES = 5000, 10_000
"""Different stacks and functions between two payloads; looks beyond count as cut."""
LOOKS_PER_CHECK = 20
"""After so many the thread asks itself whether it is due, or costs too much."""
MAX_TEXT = 120

_OUTER, _INNER = MAX_DEPTH // 2, MAX_DEPTH - MAX_DEPTH // 2 - 1
_BASE = ("distributed/worker.py", "distributed\\worker.py")
"""File of Dask's frames that call a task: what is outside of them is the same for all."""
_LIBRARY = re.compile(r".*/(?:site-packages|dist-packages|(?:l|L)ib/python3\.\d+|dask-(?:scratch|worker)-space/[^/]+)/")
"""Of `/usr/lib/python3.11/site-packages/pandas/core/frame.py` it leaves `pandas/core/frame.py`; of a file that was
uploaded, what is the same on each worker."""
_HOME = re.compile(r".*?/(?:homes?|Users)/[^/]+/|/root/")

Place = tuple[str, int, str]
"""File, line and name of a function's definition."""


class Profiler:
    """Looks at a worker's task threads from a thread of its own; `send` is called there, and once more by `stop`."""

    def __init__(self, worker: Worker, interval_s: float, send: Callable[[dict[str, Any]], None]) -> None:
        self._worker, self._interval_s, self._send = worker, interval_s, send
        # Workers that came together tell at different times: a scheduler is not to get a thousand payloads at once.
        self._first_s = interval_s * (0.5 + zlib.crc32(worker.address.encode()) / (1 << 33))
        self._sample_s = SAMPLE_S
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._begin()

    def start(self) -> None:
        """Does nothing where the user has switched Dask's profiling off."""
        if dask.config.get("distributed.worker.profile.enabled", True):
            threading.Thread(target=self._run, name="daskscope-profile", daemon=True).start()

    def stop(self) -> None:
        """Ends the thread and sends what it has seen since its last payload. Never raises."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._tell()

    def look(self) -> None:
        """Count what each task thread executes now. Never raises."""
        active = self._worker.active_threads.copy()  # one step of the interpreter: Dask's lock is not needed
        if not active:
            return
        with self._lock:
            try:
                self._look_at(active)
            except Exception:  # noqa: BLE001  # host first: whatever a frame is, this look is left out and counted
                self._cut += 1

    def take(self) -> dict[str, Any] | None:
        """What was seen since the last time, as a payload; None if no task was met."""
        with self._lock:
            counts, places, cut, from_s, sample_s = self._counts, self._places, self._cut, self._from_s, self._sample_s
            self._begin()
        if not counts and not cut:
            return None
        ranked = sorted(counts.items(), key=lambda entry: -entry[1])
        kept, rare = ranked[:MAX_STACKS], ranked[MAX_STACKS:]
        names = [frame_text(*place) for place in places]
        frames: dict[str, int] = {}
        stacks = [[frames.setdefault(names[n] if n >= 0 else OMITTED, len(frames)) for n in stack]
                  for (_, stack), _ in kept]  # fmt: skip
        return {
            "kind": "profile",
            "from_ms": round(from_s * 1e3),
            "to_ms": max(round(self._now_s() * 1e3), round(from_s * 1e3)),
            "sample_us": round(sample_s * 1e6),
            "frames": list(frames),
            "prefix": [prefix for (prefix, _), _ in kept],
            "stack": stacks,
            "count": [count for _, count in kept],
            "cut": cut + sum(count for _, count in rare),
        }

    def _begin(self) -> None:
        self._from_s = self._now_s()
        self._cut = 0
        self._counts: dict[tuple[str, tuple[int, ...]], int] = {}
        self._places: dict[Place, int] = {}

    def _now_s(self) -> float:
        """By the scheduler's clock, as Dask dates its own profile: a worker's may be hours off."""
        return time.time() + self._worker.scheduler_delay

    def _run(self) -> None:
        due_s = time.monotonic() + self._first_s
        while not self._stopped.is_set():
            began_s, began_cpu_s = time.monotonic(), time.thread_time()
            for _ in range(LOOKS_PER_CHECK):
                if self._stopped.wait(self._sample_s):
                    return
                self.look()
            now_s = time.monotonic()
            pace_s = next_pace(self._sample_s, (time.thread_time() - began_cpu_s) / (now_s - began_s))
            if now_s >= due_s or pace_s > self._sample_s:  # a payload has one pace: a slower one begins another
                due_s = now_s + self._interval_s
                self._tell()
                self._sample_s = pace_s

    def _tell(self) -> None:
        try:
            payload = self.take()
            if payload is not None:
                self._send(payload)
        except Exception:  # noqa: BLE001, S110  # host first; a worker that closes has nobody to tell
            pass

    def _look_at(self, active: Mapping[int, Any]) -> None:
        frames = sys._current_frames()  # the only way to see other threads; Dask's, too
        for ident, key in active.items():
            stack = self._stack(frames.get(ident))
            if stack:
                entry = (key_split(key), stack)
                known = self._counts.get(entry)
                if known is None and len(self._counts) >= MAX_KEPT:
                    self._cut += 1
                else:
                    self._counts[entry] = (known or 0) + 1

    def _stack(self, frame: FrameType | None) -> tuple[int, ...]:
        """Numbers of the functions, outermost first, -1 where some are left out; empty if the thread is in no task."""
        found: list[int] = []
        for _ in range(MAX_WALK):
            if frame is None:
                return ()  # between two tasks: the frames of Dask that call one were not met
            code = frame.f_code
            if code.co_filename.endswith(_BASE):
                break
            found.append(self._number((code.co_filename, code.co_firstlineno, code.co_qualname)))
            frame = frame.f_back
        else:
            found[_INNER:] = [-1]
        if len(found) > MAX_DEPTH:
            found[_INNER:-_OUTER] = [-1]
        return tuple(reversed(found))

    def _number(self, place: Place) -> int:
        known = self._places.get(place)
        if known is None:
            if len(self._places) >= MAX_PLACES:
                return -1
            known = self._places[place] = len(self._places)
        return known


def next_pace(sample_s: float, share: float) -> float:
    """From one look to the next, after looking took so much of a core."""
    if share > MAX_SHARE:
        return min(sample_s * 2, MAX_SAMPLE_S)
    return max(sample_s / 2, SAMPLE_S) if share < MAX_SHARE / 4 else sample_s


def frame_text(file: str, line: int, function: str) -> str:
    """`function (file:line)`, line and file those of the function's definition, so that all calls of one add up.

    Of a file in a library what can be imported is told; of the user's own the last folder and its name, without the
    home folder.
    """
    path = file.replace("\\", "/")
    if not path.startswith("<"):
        path, n_cut = _LIBRARY.subn("", path, count=1)
        if not n_cut:
            path = "/".join(_HOME.sub("", path, count=1).split("/")[-2:])
    return f"{function[-MAX_TEXT:]} ({path[-MAX_TEXT:]}:{line})"
