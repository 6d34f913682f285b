"""What a worker spends its time in: how often each stack of functions was met, told once an interval.

Dask's own profile cannot answer that: `Worker.trigger_profile` (2024.1 to 2026.8) never counts the innermost function
of a stack, so of several functions called by one nobody can say which took the time. So we look at the task threads
ourselves, five times more rarely than Dask does, and as Dask does from the event loop: CPython 3.11.7 crashed within
seconds, while it collected garbage, where another thread asked for the frames of one that runs an event loop. All the
rest is done in a thread. Where Dask's profiling is switched off (`distributed.worker.profile.enabled`), so is this.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

import dask.config
from dask.utils import key_split
from tornado.ioloop import PeriodicCallback

if TYPE_CHECKING:
    from distributed import Worker

SAMPLE_S = 0.05
"""From one look to the next; doubled while looking costs more than MAX_SHARE."""
MAX_SAMPLE_S = 1.6
MAX_SHARE = 0.005
"""Of a core: CPU time of looking over time."""
MAX_STACKS, MAX_DEPTH = 200, 64
"""Of a payload, which the scheduler's event loop decodes. Of a deeper stack the outermost and the innermost frames
stay, with OMITTED between: its root joins it to the other stacks, and its leaf is what took the time."""
OMITTED = "..."
MAX_WALK = 1000
"""Frames looked at of one stack."""
MAX_KEPT, MAX_PLACES = 5000, 10_000
"""Different stacks and functions between two payloads; looks beyond count as cut."""
LOOKS_PER_CHECK = 20
"""After so many it is asked whether a payload is due, or looking costs too much."""
MAX_TEXT = 120

_OUTER, _INNER = MAX_DEPTH // 2, MAX_DEPTH - MAX_DEPTH // 2 - 1
_BASE = ("distributed/worker.py", "distributed\\worker.py")
"""File of Dask's frames that call a task: what is outside of them is the same for all."""
_LIBRARY = re.compile(r".*/(?:site-packages|dist-packages|(?:l|L)ib/python3\.\d+|dask-(?:scratch|worker)-space/[^/]+)/")
"""Of `/usr/lib/python3.11/site-packages/pandas/core/frame.py` it leaves `pandas/core/frame.py`; of a file that was
uploaded, what is the same on each worker."""
_HOME = re.compile(r".*?/(?:homes?|Users)/[^/]+/")

Place = tuple[str, int, str]
"""File, line and name of a function's definition."""


class _Seen:
    """What was seen since a moment, by the scheduler's clock. Not a dataclass: it travels by value."""

    def __init__(self, from_s: float, sample_s: float) -> None:
        self.from_s, self.sample_s = from_s, sample_s
        self.counts: dict[tuple[str, tuple[int, ...]], int] = {}
        """How often each stack was met, by task prefix and numbers of functions in `places`."""
        self.places: dict[Place, int] = {}
        self.cut = 0


class Profiler:
    """Looks at a worker's task threads from its event loop; `send` is called in a thread, and once more by `stop`."""

    def __init__(self, worker: Worker, interval_s: float, send: Callable[[dict[str, Any]], None]) -> None:
        self._worker, self._interval_s, self._send = worker, interval_s, send
        self._seen = _Seen(self._now_s(), SAMPLE_S)
        self._timer: PeriodicCallback | None = None

    def start(self) -> None:
        """On the worker's event loop. Does nothing where the user has switched Dask's profiling off."""
        if dask.config.get("distributed.worker.profile.enabled", True):
            # Workers that came together tell at different times: a scheduler is not to get a thousand payloads at once.
            share = zlib.crc32(self._worker.address.encode()) / (1 << 32)
            self._due_s = time.monotonic() + self._interval_s * (0.5 + share / 2)
            self._begin_check()
            self._timer = PeriodicCallback(self._tick, SAMPLE_S * 1e3)
            self._timer.start()

    def stop(self) -> None:
        """Looks no more, and sends what was seen since the last payload. Never raises."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._tell(self._swap(self._seen.sample_s))

    def look(self) -> None:
        """Count what each task thread executes now. Never raises."""
        try:
            active = self._worker.active_threads.copy()  # one step of the interpreter: Dask's lock is not needed
            if active:
                self._look_at(active)
        except Exception:  # noqa: BLE001  # host first: whatever a frame is, this look is left out and counted
            self._seen.cut += 1

    def _now_s(self) -> float:
        """By the scheduler's clock, as Dask dates its own profile: a worker's may be hours off."""
        return time.time() + self._worker.scheduler_delay

    def _begin_check(self) -> None:
        self._n_looks, self._check_s, self._spent_s = 0, time.monotonic(), 0.0

    def _tick(self) -> None:
        try:
            began_s = time.thread_time()
            self.look()
            self._spent_s += time.thread_time() - began_s
            self._n_looks += 1
            if self._n_looks >= LOOKS_PER_CHECK:
                self._check()
                self._begin_check()
        except Exception:  # noqa: BLE001  # host first: the event loop would log it at each tick
            self._seen.cut += 1

    def _check(self) -> None:
        """Whether a payload is due, or looking costs too much. A payload has one pace: another begins another."""
        now_s = time.monotonic()
        pace_s = next_pace(self._seen.sample_s, self._spent_s / (now_s - self._check_s))
        if now_s >= self._due_s or pace_s > self._seen.sample_s:
            self._due_s = now_s + self._interval_s
            seen = self._swap(pace_s)
            if self._timer is not None:
                self._timer.callback_time = pace_s * 1e3  # tornado reads it before each round
            with suppress(RuntimeError):  # the interpreter is ending
                threading.Thread(target=self._tell, args=[seen], name="daskscope-profile", daemon=True).start()

    def _swap(self, sample_s: float) -> _Seen:
        seen, self._seen = self._seen, _Seen(self._now_s(), sample_s)
        return seen

    def _tell(self, seen: _Seen) -> None:
        try:
            if seen.counts or seen.cut:
                self._send(_payload(seen, self._now_s()))
        except Exception:  # noqa: BLE001, S110  # host first; a worker that closes has nobody to tell
            pass

    def _look_at(self, active: Mapping[int, Any]) -> None:
        frames = sys._current_frames()  # the only way to see other threads; Dask's, too
        counts = self._seen.counts
        for ident, key in active.items():
            stack = self._stack(frames.get(ident))
            if stack:
                entry = (key_split(key), stack)
                known = counts.get(entry)
                if known is None and len(counts) >= MAX_KEPT:
                    self._seen.cut += 1
                else:
                    counts[entry] = (known or 0) + 1

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
        places = self._seen.places
        known = places.get(place)
        if known is None:
            if len(places) >= MAX_PLACES:
                return -1
            known = places[place] = len(places)
        return known


def _payload(seen: _Seen, to_s: float) -> dict[str, Any]:
    ranked = sorted(seen.counts.items(), key=lambda entry: -entry[1])
    kept, rare = ranked[:MAX_STACKS], ranked[MAX_STACKS:]
    names = [frame_text(*place) for place in seen.places]
    frames: dict[str, int] = {}
    stacks = [
        [frames.setdefault(names[n] if n >= 0 else OMITTED, len(frames)) for n in stack] for (_, stack), _ in kept
    ]
    from_ms = round(seen.from_s * 1e3)
    return {
        "kind": "profile",
        "from_ms": from_ms,
        "to_ms": max(round(to_s * 1e3), from_ms),
        "sample_us": round(seen.sample_s * 1e6),
        "frames": list(frames),
        "prefix": [prefix for (prefix, _), _ in kept],
        "stack": stacks,
        "count": [count for _, count in kept],
        "cut": seen.cut + sum(count for _, count in rare),
    }


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
            # Asked here and now: what a module has at its top would come along from the scheduler's machine.
            own_home = os.path.expanduser("~").replace("\\", "/") + "/"  # noqa: PTH111  # a Path has no such slash
            path = "/".join(_HOME.sub("", path.removeprefix(own_home), count=1).split("/")[-2:])
    return f"{_end(function, '.')} ({_end(path, '/')}:{line})"


def _end(text: str, between: str) -> str:
    """The last whole parts, up to MAX_TEXT characters: half a part may be half a secret, which nobody would know."""
    if len(text) <= MAX_TEXT:
        return text
    _, _, kept = text[-MAX_TEXT:].partition(between)
    return f"{OMITTED}{between}{kept}" if kept else OMITTED
