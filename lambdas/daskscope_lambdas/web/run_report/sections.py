"""What the template of a report needs of a run: times as places on one axis, and texts cut to what a file can bear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

from daskscope_lambdas.service.run_report import Run
from daskscope_lambdas.service.words import count, duration, size
from daskscope_lambdas.web import views
from daskscope_lambdas.web.run_report.axis import Axis
from daskscope_lambdas.web.run_report.calls import outline

TABLE_ROWS = 12
"""Of lines over time as a table."""
LONGEST_LINE, LONGEST_TEXT, LONGEST_TRACEBACK = 400, 1000, 3000
"""Characters; what is left out is counted."""

Rows = Sequence[Mapping[str, Any]]
_QUESTIONS = {
    "finished": "Did it finish?",
    "exceptions": "Did anything fail?",
    "cost": "What did it cost?",
    "time": "What took the time?",
    "running": "Why is it still running?",
    "alike": "How did others go?",
}


def of(run: Run) -> dict[str, Any]:
    one = run.computation
    axis = Axis(run.start, max(filter(None, _ends(run)), default=run.start))
    step = max(1, -(-len(run.samples) // TABLE_ROWS))
    return {
        "c": run.cluster,
        "one": one,
        "no": one["id"].rpartition("-")[2] if one else None,
        "answers": [(name, _QUESTIONS[name], answer) for name, answer in run.answers.items()],
        "run": run,
        "start": run.start,
        "span": axis.span_s,
        "lines": _lines(axis, run.samples),
        "samples": run.samples[::-1][::step][::-1],
        "computations": [_computation(axis, each) for each in run.computations.rows],
        "code": [_snippet(each) for each in one["code"]] if one else [],
        "groups": [{**each, "bar": axis.bar(each["start"], each["stop"])} for each in run.groups.rows],
        "longest": max((sum(each["seconds"].values()) for each in (*run.groups.rows, *run.prefixes.rows)), default=0),
        "calls_shown": outline(run.profile),
        "families": [_family(each) for each in run.families.rows],
        "messages": [{**each, "text": cut(each["text"], LONGEST_LINE)} for each in reversed(run.lines.rows)],
        "facts": _facts(run.cluster),
    }


def _ends(run: Run) -> list[datetime | None]:
    """Of all that stands on the axis."""
    stops = [each["stop"] for each in (*run.computations.rows, *run.groups.rows)]
    last = run.samples[-1]["time"] if run.samples else None
    return [*stops, run.computation["stop"] if run.computation else last]


def _lines(axis: Axis, samples: Rows) -> list[dict[str, Any]]:
    if len(samples) < 2:
        return []
    # A scheduler's clock may be set back: then no time passes, rather than a negative one.
    times = list(accumulate((sample["time"] for sample in samples), max))

    def chart(title: str, note: str, **values: list[Any]) -> dict[str, Any]:
        top = max(max(each) for each in values.values())
        paths = [(kind, axis.line(times, each, top)) for kind, each in values.items()]
        return {"title": title, "note": note, "paths": paths}

    def all_of(name: str) -> list[Any]:
        return [sample[name] or 0 for sample in samples]

    workers, memory, limit, spilled = (all_of(name) for name in ("workers", "memory", "memory_limit", "spilled"))
    cpu, threads = all_of("cpu_pct"), all_of("threads")
    doing, waiting = ([sample["tasks"][state] for sample in samples] for state in ("processing", "waiting"))
    of_limit = f"at most {size(max(memory))}" + (f" of {size(max(limit))}" if any(limit) else "")
    of_limit += f", {size(max(spilled))} spilled (orange)" if any(spilled) else ""
    found = [
        chart("Workers", f"at most {max(workers):,}", workers=workers),
        chart("Memory", of_limit, limit=limit, memory=memory, **({"spilled": spilled} if any(spilled) else {})),
        chart(
            "Tasks",
            f"at most {max(doing):,} on workers, {max(waiting):,} waiting (grey), in {count(len(samples), 'sample')}",
            waiting=waiting,
            processing=doing,
        ),
    ]
    if any(cpu):
        threaded = [100 * n for n in threads]
        found.append(
            chart("CPU", f"at most {max(cpu):,} % of a core, by {max(threads):,} threads", limit=threaded, cpu=cpu)
        )
    return found


def _computation(axis: Axis, record: Mapping[str, Any]) -> dict[str, Any]:
    """With the line of code that called, as far as it is known."""
    snippet = record["code"][-1] if record["code"] else None
    lines = [line["text"].strip() for line in views.snippet(snippet)["lines"] if line["called"]] if snippet else []
    return {
        **record,
        "no": record["id"].rpartition("-")[2],
        "bar": axis.bar(record["start"], record["stop"]),
        "place": f"{snippet['file'].rpartition('/')[2]}:{snippet['line']}" if snippet else "",
        "call": cut(lines[0], 120) if lines else "",
    }


def _snippet(record: Mapping[str, Any]) -> dict[str, Any]:
    found = views.snippet(record)
    return {**found, "lines": [{**line, "text": cut(line["text"], LONGEST_LINE)} for line in found["lines"]]}


def _family(record: Mapping[str, Any]) -> dict[str, Any]:
    traceback = cut(record["traceback"], LONGEST_TRACEBACK)
    return {**record, "text": cut(record["text"], LONGEST_TEXT), "traceback": traceback}


def cut(text: str | None, longest: int) -> str:
    """With how many characters were left out, if any."""
    if text is None or len(text) <= longest:
        return text or ""
    return f"{text[:longest]}… ({len(text) - longest:,} more characters)"


def _facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    told = [
        ("Scheduler", record["scheduler_id"]),
        ("Host", record["host"]),
        ("Platform", record["platform"]),
        ("Kind", record["kind"]),
        ("Most workers", f"{record['peak_workers']:,}"),
        ("Peak memory", size(record["peak_memory"])),
        ("Thread time", duration(record["thread_seconds"])),
        ("Python", record["python"]),
        *record["versions"].items(),
    ]
    return [(name, value) for name, value in told if value]
