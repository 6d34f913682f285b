"""What registry and lake know of clusters and computations that are to be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from daskscope_lambdas.ports import Clock, ClusterRow
from daskscope_lambdas.service import profiles, records
from daskscope_lambdas.service.comparison import Record, Side, frames_of, work_of
from daskscope_lambdas.service.computations import Computations
from daskscope_lambdas.service.computations import Wanted as Chosen
from daskscope_lambdas.service.costs import Costs
from daskscope_lambdas.service.found import UNLISTED, Asker, Found, found_in
from daskscope_lambdas.service.profiles import MAX_STACKS, Profiles
from daskscope_query.lake import Answer

MAX_COMPUTATIONS = 100
"""Of a cluster whose code is looked at: the first ones."""

_NO_LIMIT = 1 << 40
_PACKAGE = "package"
_MACHINE = ("instance_type", "region", "lifecycle", "cores", "memory", "gpus", "threads", "memory_limit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """`skipped` and `as_of` over all that was read, `as_of` the oldest of them."""

    sides: list[Side]
    skipped: list[str]
    as_of: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A side, what it was read from, and its packages: those that a process told in full, or None."""

    side: Side
    packages: Mapping[str, str] | None
    answers: Sequence[Found]


class Sides:
    def __init__(
        self, asker: Asker, clock: Clock, computations: Computations, profiles: Profiles, costs: Costs
    ) -> None:
        self._asker, self._clock, self._costs = asker, clock, costs
        self._computations, self._profiles = computations, profiles

    def clusters(self, rows: Sequence[ClusterRow]) -> Known:
        return _together([self._cluster(row) for row in rows])

    def computations(self, named: Sequence[tuple[ClusterRow, str]]) -> Known:
        """Each by its cluster and its id. Raises NotFound."""
        return _together([self._computation(row, computation) for row, computation in named])

    def _cluster(self, row: ClusterRow) -> _Reading:
        record, cost = records.cluster(row, self._clock.now()), self._costs.of(row)
        prefixes = self._computations.prefixes(row)
        first = self._computations.of_cluster(row, MAX_COMPUTATIONS, 0, Chosen(sort="start"), whole=False)
        stacks = self._profiles.of_cluster(row, profiles.Wanted()).stacks(MAX_STACKS, 0)
        metrics = self._asker.ask_of(row, "metrics_by_prefix", given=UNLISTED, limit=_NO_LIMIT, offset=0)
        told, machines = self._environments(row), self._asker.ask_of(row, "machines")
        packages = _packages(told.records())
        code, missing = _texts(snippet for each in first.rows for snippet in each["code"])
        if row.totals.get("n_computations", 0) > MAX_COMPUTATIONS:
            missing.append(f"code beyond its first {MAX_COMPUTATIONS} computations is left out")
        side = Side(
            item={name: record[name] for name in ("id", "name", "user", "status", "created")},
            measures={
                **{name: record[name] for name in _OF_CLUSTER},
                "dollars": cost.dollars,
                "idle_dollars": cost.idle_dollars,
                "failed_dollars": cost.failed_dollars,
                "task_seconds": sum(record["seconds"].values()),
                "bytes": sum(each["bytes"] for each in prefixes.rows),
                **_moved(metrics.records()),
            },
            seconds=record["seconds"],
            work=work_of(prefixes.rows),
            facts={**_identity(record), **_machines(machines.records())},
            currency=cost.currency,
            code=code,
            frames=frames_of(stacks.rows),
            missing=missing,
        )
        others = [found_in([], answer) for answer in (metrics, told, machines)]
        return _Reading(side=side, packages=packages, answers=[prefixes, first, stacks, *others])

    def _computation(self, row: ClusterRow, computation: str) -> _Reading:
        found = self._computations.alone(row, computation, whole=False)
        prefixes = self._computations.prefixes(row, computation)
        (record,) = found.rows
        cluster = records.cluster(row, self._clock.now())
        stacks = self._profiles.of_cluster(row, profiles.Wanted(), computation=computation).stacks(MAX_STACKS, 0)
        told, machines = self._environments(row), self._machines_during(row, record)
        present, duration = machines.records(), record["duration"]
        n_workers, thread_seconds = _present(present, duration)
        code, missing = _texts(record["code"])
        side = Side(
            item={name: record[name] for name in _OF_COMPUTATION},
            measures={
                **{name: record[name] for name in ("duration", "n_tasks", "n_tasks_erred", "bytes")},
                "dollars": record["cost"]["dollars"],
                "thread_seconds": thread_seconds,
                "task_seconds": sum(record["seconds"].values()),
            },
            seconds=record["seconds"],
            work=work_of(prefixes.rows),
            currency=record["cost"]["currency"],
            facts={
                **_identity(cluster),
                ("workers", "count"): n_workers,
                **_machines(present),
            },
            code=code,
            frames=frames_of(stacks.rows),
            missing=missing,
        )
        others = [found_in([], answer) for answer in (told, machines)]
        return _Reading(side=side, packages=_packages(told.records()), answers=[found, prefixes, stacks, *others])

    def _environments(self, row: ClusterRow) -> Answer:
        return self._asker.ask_of(row, "environments")

    def _machines_during(self, row: ClusterRow, record: Record) -> Answer:
        boot, _, _ = record["id"].rpartition("-")
        return self._asker.ask_of(row, "machines", boot=boot, since=record["start"], until=record["stop"])


_OF_CLUSTER = (
    "duration", "thread_seconds", "n_computations", "n_tasks", "n_tasks_erred", "peak_workers", "workers_lost",
    "peak_memory",
)  # fmt: skip
_OF_COMPUTATION = ("id", "cluster_id", "cluster_name", "user", "status", "start", "fingerprint")


def _together(readings: Sequence[_Reading]) -> Known:
    """All packages count where every side tells all of its own; else those of its scheduler's versions."""
    whole = all(reading.packages is not None for reading in readings)
    sides: list[Side] = []
    for reading in readings:
        side, told = reading.side, reading.packages
        if whole and told is not None:
            facts = {fact: value for fact, value in side.facts.items() if fact[0] != _PACKAGE}
            side = replace(side, facts={**facts, **{(_PACKAGE, name): version for name, version in told.items()}})
        elif told is None:
            said = "its processes have not told all of their packages: those of the scheduler's versions are compared"
            side = replace(side, missing=[*side.missing, said])
        sides.append(side)
    answers = [answer for reading in readings for answer in reading.answers]
    skipped = sorted({key for answer in answers for key in answer.skipped})
    as_of = min((answer.as_of for answer in answers if answer.as_of), default=None)
    return Known(sides=sides, skipped=skipped, as_of=as_of)


def _identity(record: Record) -> dict[tuple[str, str], Any]:
    """What a cluster is, as its record tells it."""
    return {
        **{("cluster", name): record[name] for name in ("kind", "user", "host")},
        **{("software", name): record[name] for name in ("python", "python_path", "platform")},
        **{(_PACKAGE, name): version for name, version in record["versions"].items()},
        **{("tag", name): value for name, value in record["tags"].items()},
        **{("adaptive", name): record[f"adaptive_{name}"] for name in ("minimum", "maximum")},
        ("settings", "idle_timeout"): record["idle_timeout"],
    }


def _present(kinds: Sequence[Record], duration: float | None) -> tuple[int | None, float | None]:
    """How many workers were there at a time, on the average, and the time of their threads; while it runs, how many
    there have been."""
    n_ever = sum(each["n"] for each in kinds)
    if not kinds or duration is None:
        return n_ever or None, None
    thread_seconds = sum(each["n_threads"] * each["present_ms"] for each in kinds) / 1e3
    present_s = sum(each["present_ms"] for each in kinds) / 1e3
    return max(round(present_s / duration), 1) if duration else n_ever, thread_seconds


def _machines(kinds: Sequence[Record]) -> dict[tuple[str, str], Any]:
    """What workers ran on: a value, or several as a list, most frequent first; nothing of what nobody told."""
    named = [
        {
            **{name: each[name] for name in ("instance_type", "region", "lifecycle", "cores")},
            "memory": each["memory_bytes"],
            "gpus": ", ".join(each["gpus"] or ()) or None,
            "threads": each["n_threads"],
            "memory_limit": each["memory_limit_bytes"],
        }
        for each in kinds
    ]
    values = {name: [found for each in named if (found := each[name]) is not None] for name in _MACHINE}
    distinct = {name: list(dict.fromkeys(found)) for name, found in values.items() if found}
    return {("worker", name): found[0] if len(found) == 1 else found for name, found in distinct.items()}


def _packages(environments: Sequence[Record]) -> dict[str, str] | None:
    """Of the environment that most workers have; of the scheduler's if no worker told."""
    told = sorted(
        environments, key=lambda found: (found["role"] != "worker", found["role"] != "scheduler", -found["n"])
    )
    return dict(told[0]["packages"]) if told and told[0]["role"] != "client" else None


def _moved(metrics: Iterable[Record]) -> dict[str, float | None]:
    """Bytes that tasks took as their inputs, and that were spilled; None where Dask tells of none."""
    inputs: list[float] = []
    spilled: list[float] = []
    for each in metrics:
        if each["unit"] == "bytes" and each["activity"] == "disk-write":
            spilled.append(each["value"])
        elif each["unit"] == "bytes" and each["context"] == "execute":
            inputs += [each["value"]] if each["activity"] in ("memory-read", "disk-read") else []
    return {
        "input_bytes": round(sum(inputs)) if inputs else None,
        "spilled_bytes": round(sum(spilled)) if spilled else None,
    }


def _texts(snippets: Iterable[Mapping[str, Any]]) -> tuple[list[str] | None, list[str]]:
    """Each text once, in order; None if none is kept. And sentences on those that are not."""
    frames = [snippet["text"] for snippet in snippets]
    texts = list(dict.fromkeys(text for text in frames if text is not None))
    lost = len(frames) - sum(text is not None for text in frames)
    return texts or None, [f"of {len(frames)} pieces of its code {lost} are not kept"] if texts and lost else []
