"""What the templates need of records and answers: sorted, cut to what a page can hold, and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any
from urllib.parse import urlsplit

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service import records
from daskscope_lambdas.service.answers import Depth, answers
from daskscope_lambdas.service.cost import Cost
from daskscope_lambdas.service.depth import Everything
from daskscope_lambdas.service.words import count, duration, size
from daskscope_lambdas.web.charts import line

COMPUTATIONS = 20
LISTED = 100
"""Exceptions and events on a page; it says where the rest is."""
GROUPS = 50
AROUND = 6
"""Lines of code shown before and after the one that called."""
TABLE_ROWS = 60

Rows = Sequence[Mapping[str, Any]]


def listed(row: ClusterRow, now: float, cost: Mapping[str, Any]) -> dict[str, Any]:
    """One line of the list of clusters; `cost` as in its record."""
    used_share = 1 - cost["idle"] / cost["dollars"] if cost["dollars"] else None
    return {**records.cluster(row, now), "cost": cost, "used_share": used_share}


def cluster(
    row: ClusterRow, now: float, found: Everything, cost: Cost, offset: int, complete: Mapping[str, Any]
) -> dict[str, Any]:
    """The page of a cluster. `found` has one more of computations, exceptions and events than are shown."""
    record = records.cluster(row, now)
    dashboard = record["dashboard"] or ""
    step = max(1, -(-len(found.samples) // TABLE_ROWS))
    return {
        "c": record,
        "answers": answers(row, now, Depth(found.prefixes, found.kinds), cost),
        "lost": complete["lost"],
        "complete": complete["sentence"],
        "skipped_files": found.skipped,
        "as_of": found.as_of,
        "lines": _lines(found.samples),
        "samples": found.samples[::-1][::step],
        "n_samples": len(found.samples),
        "computations": [_computation(c) for c in found.computations[:COMPUTATIONS]],
        "offset": offset,
        "older": offset + COMPUTATIONS if len(found.computations) > COMPUTATIONS else None,
        "exceptions": found.exceptions[:LISTED],
        "more_exceptions": len(found.exceptions) > LISTED,
        "events": found.events[:LISTED],
        "more_events": len(found.events) > LISTED,
        "workers": found.workers,
        "facts": _facts(record),
        # A cluster says what it likes: only what a browser opens as a page becomes a link.
        "dashboard": dashboard if urlsplit(dashboard).scheme in ("http", "https") else None,
    }


def _computation(record: Mapping[str, Any]) -> dict[str, Any]:
    times = {id(group): sum(group["seconds"].values()) for group in record["groups"]}
    shown = sorted(record["groups"], key=lambda group: times[id(group)], reverse=True)[:GROUPS]
    # A worker's clock tells the start, maybe another one's the end.
    took = max((record["stop"] - record["start"]).total_seconds(), 0.0) if record["stop"] else None
    longest = max(times.values(), default=0.0)
    return {
        **record,
        "code": [snippet(each) for each in record["code"]],
        "no": record["id"].rpartition("-")[2],
        "took": took,
        "shown": {"groups": shown, "longest": longest},
    }


def snippet(record: Mapping[str, Any]) -> dict[str, Any]:
    """A frame's code around the line that called, each line with its number in the file; `whole` if there is more."""
    if record["text"] is None:
        return {**record, "lines": [], "whole": False}
    text = record["text"].splitlines()
    called = record["line_in_code"]
    first, last = max(called - AROUND, 1), min(called + AROUND, len(text))
    offset = record["line"] - called
    lines = [{"no": n + offset, "text": text[n - 1], "called": n == called} for n in range(first, last + 1)]
    return {**record, "lines": lines, "whole": len(lines) < len(text)}


def _lines(samples: Rows) -> list[dict[str, Any]]:
    if len(samples) < 2:
        return []
    # A scheduler's clock may be set back: then no time passes, rather than a negative one.
    times = list(accumulate((sample["at"] for sample in samples), max))
    span = (times[-1] - times[0]).total_seconds()
    ends = {"first": f"{times[0]:%H:%M:%S}", "last": f"{times[-1]:%H:%M:%S}"}

    def chart(title: str, note: str, top: float, **columns: str) -> dict[str, Any]:
        paths = [(kind, line(times, [s[column] for s in samples], top)) for kind, column in columns.items()]
        return {"title": title, "note": note, "paths": paths, **ends}

    def most(column: str) -> int:
        return max(sample[column] for sample in samples)

    memory, limit, spilled = most("memory_bytes"), most("memory_limit_bytes"), most("spilled_bytes")
    doing, waiting = most("processing"), most("waiting")
    of_limit = f"at most {size(memory)} of {size(limit)}" if limit else f"at most {size(memory)}"
    spill = f", {size(spilled)} spilled (orange)" if spilled else ""
    return [
        chart("Workers", f"at most {most('n_workers')}, over {duration(span)}", most("n_workers"), workers="n_workers"),
        chart(
            "Memory",
            of_limit + spill,
            max(memory, limit, spilled),
            **{"limit": "memory_limit_bytes", "memory": "memory_bytes"}
            | ({"spilled": "spilled_bytes"} if spilled else {}),
        ),
        chart(
            "Tasks",
            f"at most {doing:,} on workers, {waiting:,} waiting (grey), in {count(len(samples), 'sample')}",
            max(doing, waiting),
            waiting="waiting",
            processing="processing",
        ),
    ]


def _facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    idle = record["idle_timeout"]
    return [
        ("Scheduler", record["scheduler_id"]),
        ("Host", record["host"] or "–"),
        ("Platform", record["platform"] or "–"),
        ("Threads", f"{record['threads']:,}"),
        ("Thread time", duration(record["thread_seconds"])),
        ("Peak memory", size(record["peak_memory"])),
        ("Results held", size(record["held_bytes"])),
        ("Idle timeout", duration(idle) if idle else "none"),
        ("Python", record["python"] or "–"),
    ]
