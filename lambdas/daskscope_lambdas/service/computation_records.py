"""The records of computations and of task groups, as docs/reference/http-api.md has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from daskscope_lambdas.service.cost import HOUR_US
from daskscope_lambdas.service.found import Record, numbered, scheduler_id, seconds
from daskscope_lambdas.service.words import duration, money


def id_of(found: Record) -> str:
    return f"{found['boot']}-{found['no']}"


def computation(found: Record, sums: Record, groups: Sequence[Record] | None) -> Record:
    """`sums`: `states`, `seconds` and `bytes` of its groups, which stand in it unless they are None."""
    frames = {tuple(frame.values()): frame for call in found["code"] for frame in call}
    record = {
        "id": id_of(found),
        "cluster_id": found["cluster_id"],
        "scheduler_id": scheduler_id(found["cluster"], {}),
        "cluster_name": found["cluster_name"],
        "user": found["user"],
        "status": found["status"],
        "start": found["start_at"],
        "stop": found["stop_at"],
        "duration": seconds_of(found["duration_ms"]),
        "fingerprint": found["fingerprint"],
        # Calls share their outer frames: each frame once.
        "code": list(frames.values()),
        "n_tasks": found["n_tasks"],
        "n_tasks_erred": found["n_tasks_erred"],
        **sums,
        "cost": _cost(found),
    }
    return record if groups is None else {**record, "groups": groups}


def sums_of(groups: Sequence[Record]) -> Record:
    """Of a computation's groups, as its record has them."""
    return {
        "states": _sum(each["states"] for each in groups),
        "seconds": _sum(each["seconds"] for each in groups),
        "bytes": sum(each["bytes"] for each in groups),
    }


def sums_in(found: Record) -> Record:
    """The same, summed by the query."""
    return {"states": found["states"], "seconds": seconds(found["action_us"]), "bytes": found["nbytes"]}


def _cost(found: Record) -> Record:
    known, currency = found["dollars"] is not None, found["currency"] or "USD"
    basis = "unknown: nobody knows yet what its cluster cost"
    if known:
        per_hour = money(found["dollars_per_us"] * HOUR_US, currency)
        spent = duration(found["work_us"] / 1e6)
        basis = f"{found['quality']}: {spent} of workers at {per_hour} a thread-hour of cluster {found['cluster_id']}"
    quality = found["quality"] if known else "unknown"
    return {
        "dollars": found["dollars"],
        "idle": None,
        "failed": None,
        "currency": currency,
        "quality": quality,
        "basis": basis,
    }


def group(found: Record) -> Record:
    return {
        "id": numbered(found["boot"], found["no"]),
        "computation": numbered(found["boot"], found["computation"]),
        "name": found["name"],
        "prefix": found["prefix"],
        "start": found["start_at"],
        "stop": found["stop_at"],
        "n_tasks": found["n_tasks"],
        "n_tasks_erred": found["n_tasks_erred"],
        "states": found["states"],
        "seconds": seconds(found["action_us"]),
        "bytes": found["nbytes"],
        "dependencies": found["dependencies"],
        "types": found["types"],
        "span": found["span"],
    }


def prefix(found: Record) -> Record:
    return {
        "prefix": found["prefix"],
        "n_clusters": found["n_clusters"],
        "n_tasks": found["n_tasks"],
        "bytes": found["nbytes"],
        "seconds": seconds(found["action_us"]),
    }


def seconds_of(ms: float | None) -> float | None:
    return None if ms is None else ms / 1e3


def _sum(maps: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for entries in maps:
        total.update(entries)
    return dict(total)
