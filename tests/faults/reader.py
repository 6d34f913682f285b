"""Somebody who asks all the time, in a process of its own, by the way that pages and API ask."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from daskscope_lambdas.env import FunctionEnv as Told
from daskscope_lambdas.handlers import reading
from daskscope_query.lake import MovedError
from tests.faults.sealing import DOOMED
from tests.faults.telemetry import ACCOUNT

Seen = dict[str, int]
"""By what was asked, how many were seen."""


@dataclass(frozen=True, slots=True)
class Reads:
    """`odd`: answers that were another than the first. `moved`: questions that had no answer, for files kept moving."""

    n: int
    odd: list[Seen]
    moved: int


def look(first: date, last: date, clusters: list[str]) -> Seen:
    """Rows of single clusters, also of the deleted one, and what stands in the roll-ups of all."""
    ask, days = reading.asker().ask, (first, last)
    counts = {"samples": 0, "events": 0}
    for cluster in clusters:
        counts["samples"] += ask("samples", ACCOUNT, days, cluster=cluster).rows.num_rows
        counts["events"] += ask("events", ACCOUNT, days, cluster=cluster, limit=1 << 40, offset=0).rows.num_rows
    kinds = ask("families", ACCOUNT, days, limit=1 << 40, offset=0).records()
    prefixes = ask("prefixes", ACCOUNT, days, limit=1 << 40, offset=0).records()
    gone = ask("events", ACCOUNT, days, cluster=DOOMED, limit=1 << 40, offset=0).rows.num_rows
    raised, tasks = sum(row["count"] for row in kinds), sum(row["n_tasks"] for row in prefixes)
    return counts | {"exceptions": raised, "tasks": tasks, "deleted": gone}


class Reader:
    """Asks from entering to leaving."""

    def __init__(self, env: Told, environ: Mapping[str, str], first: date, last: date, clusters: list[str]) -> None:
        context = multiprocessing.get_context("forkserver")
        self._talk, theirs = context.Pipe()
        self._process = context.Process(target=_read, args=(theirs, env, environ, first, last, clusters), daemon=True)
        self.reads = Reads(0, [], 0)

    def __enter__(self) -> Reader:
        self._process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.reads = self._say("end")
        else:
            self._process.kill()
        self._process.join()

    def begin_anew(self) -> None:
        """Comes back when every question that is being asked began after this was called."""
        self._say("anew")

    def _say(self, word: str) -> Any:
        self._talk.send(word)
        return self._talk.recv()


def _read(
    talk: Connection, env: Told, environ: Mapping[str, str], first: date, last: date, clusters: list[str]
) -> None:
    os.environ |= env.variables() | dict(environ)
    seen = list[Seen]()
    moved = 0
    while True:
        word = talk.recv() if talk.poll() else ""
        if word == "end":
            talk.send(Reads(len(seen), [each for each in seen if each != seen[0] or each["deleted"]], moved))
            return
        if word:
            talk.send("")
        try:
            seen.append(look(first, last, clusters))
        except MovedError:
            moved += 1
