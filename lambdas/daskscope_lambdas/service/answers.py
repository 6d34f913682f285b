"""The five answers: did it finish, what failed, what did it cost, what took the time, why is it still running.

Each is a verdict (one word), a sentence and figures. A sentence says only what the registry and the lake know; what
they do not know is said too. The scheduler's clock may be off, so its times are compared with each other alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.clocks import last_sign_at
from daskscope_lambdas.service.closing import IDLED, expected_by, is_asked
from daskscope_lambdas.service.records import MISSED, STATES, Status, close_asked, status, up_s
from daskscope_lambdas.service.words import count, duration, moment, money, share, size

if TYPE_CHECKING:  # cost.py needs what the sweep's bundle lacks.
    from daskscope_lambdas.service.cost import Cost

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Depth:
    """What the lake adds: the records of a cluster's task prefixes, as in the API, and its kinds of exception."""

    prefixes: Sequence[Mapping[str, Any]] = ()
    kinds: Sequence[Mapping[str, Any]] = ()
    """All of them: `type`, `text`, `count`, and `family`, the same for those whose texts differ in figures alone."""


_NOTHING = Depth()


def answers(row: ClusterRow, now: float, depth: Depth, priced: Cost) -> dict[str, Answer]:
    """All five, by name, in their order."""
    state = status(row, now)
    return {
        "finished": finished(row, now, state, depth),
        "exceptions": exceptions(row, depth),
        "cost": cost(priced),
        "time": time(row, depth),
        "running": running(row, now, state),
    }


def finished(row: ClusterRow, now: float, state: Status, depth: Depth = _NOTHING) -> Answer:
    """Did it finish?"""
    seen, failed, left = row.totals.get("n_tasks", 0), row.totals.get("n_tasks_erred", 0), _left(row)
    given_up = _given_up(depth, failed)
    figures = {"n_tasks": seen, "n_left": left, "n_given_up": given_up, "up_seconds": up_s(row, now)}
    done, up = max(0, seen - left - given_up), duration(up_s(row, now))
    if state == "running":
        progress = f"{share(done, seen)} of {count(seen, 'task')} done" if seen else "no task seen yet"
        return {"verdict": "running", "sentence": f"Running for {up}; {progress}.", **figures}
    rest = f", {count(left, 'task')} not done" if left else "" if given_up else ", none left to do"
    if given_up:
        rest += f"; {count(given_up, 'task was', 'tasks were')} given up before done"
    tasks = f"{count(seen, 'task')} seen, {failed:,} failed{rest}"
    if state == "stopped":
        verdict = "unfinished" if left or given_up else "finished"
        return {"verdict": verdict, "sentence": f"Closed after {up}{_because(row)}; {tasks}.", **figures}
    sentence = (
        f"Not heard of for {duration(now - row.last_received_at)}, after {up}: lost. At its last message: {tasks}"
    )
    return {"verdict": "lost", "sentence": f"{sentence}{_memory(row)}.", **figures}


def exceptions(row: ClusterRow, depth: Depth) -> Answer:
    """What failed?"""
    failed, lost = row.totals.get("n_tasks_erred", 0), row.totals.get("n_workers_lost", 0)
    kinds: Counter[str] = Counter()
    texts: dict[str, tuple[str, str]] = {}
    of_dask = 0
    for found in depth.kinds:
        if found.get("origin") == "dask":  # No task's doing: Dask says that it failed itself.
            of_dask += found["count"]
        else:
            kinds[found["family"]] += found["count"]
            texts.setdefault(found["family"], (found["type"], found["text"]))
    known = max(failed, kinds.total())
    figures = {"count": known, "kinds": len(kinds), "workers_lost": lost, "of_dask": of_dask}
    besides = f" Dask itself failed {_times(of_dask)}." if of_dask else ""
    besides += f" {count(lost, 'worker')} went without being asked to." if lost else ""
    if not known:
        verdict = "failed" if of_dask else "workers-lost" if lost else "none"
        return {"verdict": verdict, "sentence": f"No task failed.{besides}", **figures}
    if not kinds:
        sentence = f"{count(known, 'task')} failed; no text of an exception has arrived.{besides}"
        return {"verdict": "failed", "sentence": sentence, **figures}
    (family, times), *_ = kinds.most_common(1)
    kind, text = texts[family]
    # Dask's text is the exception's repr, which as a rule begins with its type.
    # What the plugin had to drop may have been of any kind.
    at_least = "at least " if row.lost.get("exceptions") else ""
    first = _short(text if text.startswith(kind) else f"{kind}: {text}".rstrip(": "))
    most = f"the most frequent, {_times(times)}" if len(kinds) > 1 else _times(times)
    sentence = f"{count(known, 'task')} failed, {at_least}{count(len(kinds), 'kind')} of exception; {most}: {first}"
    return {"verdict": "failed", "sentence": f"{sentence}{'.' + besides if besides else ''}", **figures}


def cost(found: Cost) -> Answer:
    """What did it cost?"""
    figures = {
        "thread_hours": found.thread_hours,
        "machine_hours": found.machine_hours,
        "used_share": found.used_share,
        "dollars": found.dollars,
        "idle_dollars": found.idle_dollars,
        "failed_dollars": found.failed_dollars,
        "currency": found.currency,
        "basis": found.basis,
    }
    if found.dollars is None or found.idle_dollars is None:
        sentence = "No worker has been seen, so nothing is known of the cost."
        return {"verdict": "unknown", "sentence": sentence, **figures}
    sentence = f"{money(found.dollars, found.currency)}, {found.basis}."
    sentence += (
        f" {money(found.idle_dollars, found.currency)} of it for thread time in which no task that has ended ran"
    )
    if found.failed_dollars:
        sentence += f", {money(found.failed_dollars, found.currency)} for tasks that failed"
    return {"verdict": found.quality, "sentence": f"{sentence}.", **figures}


def time(row: ClusterRow, depth: Depth) -> Answer:
    """What took the time?"""
    actions: Mapping[str, int] = row.totals.get("action_us", {})
    prefixes: Counter[str] = Counter()
    for each in depth.prefixes:
        prefixes[each["prefix"]] += sum(each["seconds"].values())
    total = sum(actions.values()) / 1e6
    figures = {"seconds": {a: us / 1e6 for a, us in actions.items()}, "prefixes": dict(prefixes.most_common(10))}
    if not total:
        return {"verdict": "nothing", "sentence": "No task has taken any time yet.", **figures}
    by_action = Counter(actions).most_common(3)
    spent = ", ".join(f"{action} {share(us / 1e6, total)}" for action, us in by_action if us)
    sentence = f"{duration(total)} of worker time: {spent}."
    named = [(name, s) for name, s in prefixes.most_common(3) if s]
    if named:
        # Over the groups' own sum: the lake may be a moment behind the registry.
        tops = ", ".join(f"{_short(name, 60)} {share(s, prefixes.total())}" for name, s in named)
        sentence += f" By tasks: {tops}."
    return {"verdict": by_action[0][0], "sentence": sentence, **figures}


def running(row: ClusterRow, now: float, state: Status) -> Answer:
    """Why is it still running?"""
    totals = row.totals
    tasks = {name: totals.get(field, 0) for field, name in STATES.items()}
    figures = {
        "tasks": tasks,
        "clients": totals.get("n_clients", 0),
        "held": totals.get("in_memory", 0),
        "held_bytes": totals.get("held_bytes", 0),
        "adaptive_minimum": totals.get("adaptive_minimum"),
        "close_asked": close_asked(row),
    }
    if state == "stopped":
        sentence = f"It is not: closed on {moment(last_sign_at(row), seconds=True)} UTC{_because(row)}{_asked_by(row)}."
        return {"verdict": "stopped", "sentence": sentence, **figures}
    if state == "lost":
        silent = duration(now - row.last_received_at)
        sentence = f"Nobody knows: silent for {silent}, after {MISSED} messages it counts as lost."
        return {"verdict": "lost", "sentence": sentence, **figures}
    found = _at_work(row, now, tasks)
    return {**found, "sentence": found["sentence"] + _asked_to_close(row, now), **figures}


def _at_work(row: ClusterRow, now: float, tasks: Mapping[str, int]) -> Answer:
    """Of a cluster that reports."""
    totals = row.totals
    idle_since_ms = totals.get("idle_since_ms")
    if idle_since_ms is not None:
        idle_s = max(0.0, row.made_at - idle_since_ms / 1e3) + max(0.0, now - row.last_received_at)
        sentence = f"Idle for {duration(idle_s)}; {_kept_by(row, idle_s)}."
        return {"verdict": "idle", "sentence": sentence, "idle_seconds": idle_s}
    present = count(totals.get("n_workers", 0), "worker")
    if tasks["no-worker"] and not tasks["processing"]:
        sentence = f"{count(tasks['no-worker'], 'task')} wait for a worker that may run them; {present} present."
        return {"verdict": "stuck", "sentence": sentence}
    if _left(row) and not totals.get("n_workers", 0):
        return {"verdict": "stuck", "sentence": f"{count(_left(row), 'task')} to do and no worker."}
    todo = ", ".join(f"{tasks[s]:,} {s}" for s in ("processing", "queued", "waiting", "no-worker") if tasks[s])
    sentence = f"{present} at work: tasks {todo}." if todo else f"{present}, no task to do just now."
    return {"verdict": "working", "sentence": sentence}


def _left(row: ClusterRow) -> int:
    return sum(row.totals.get(field, 0) for field in ("waiting", "queued", "no_worker", "processing"))


def _given_up(depth: Depth, failed: int) -> int:
    """Tasks that nobody wanted any more before one of their group was done. A failed one of which no group is known may
    be among them, and is not counted."""
    given_up, placed = (sum(each[name] for each in depth.prefixes) for name in ("n_given_up", "n_tasks_erred"))
    return max(given_up - max(failed - placed, 0), 0)


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def _because(row: ClusterRow) -> str:
    if row.reason in (None, "closed"):
        return ""
    timeout_us = row.totals.get("idle_timeout_us") if row.reason == IDLED else None
    return f" ({row.reason}: nothing to do for {duration(timeout_us / 1e6)})" if timeout_us else f" ({row.reason})"


def _memory(row: ClusterRow) -> str:
    used, limit = row.totals.get("memory_bytes", 0), row.totals.get("memory_limit_bytes", 0)
    return f", workers' memory {share(used, limit)} full" if limit else ""


def _asked_by(row: ClusterRow) -> str:
    """Who asked for the end, of a cluster that closed because it was asked to."""
    if row.reason != "close-requested" or row.close_asked_at is None:
        return ""
    why = f": {row.close_asked_reason}" if row.close_asked_reason else ""
    return f", asked for by {row.close_asked_by}{why}"


def _asked_to_close(row: ClusterRow, now: float) -> str:
    if row.close_asked_at is None:
        return ""
    asked = f" Asked to close {duration(now - row.close_asked_at)} ago by {row.close_asked_by}"
    if row.close_asked_reason:
        asked += f" ({row.close_asked_reason})"
    if not is_asked(row.close_asked_at, now):
        return f"{asked}, to no effect; it is not asked any more."
    if row.last_received_at > row.close_asked_at:
        return f"{asked}; it has been told."
    return f"{asked}; it is told with its next message, due by {moment(expected_by(row, now), seconds=True)} UTC."


def _kept_by(row: ClusterRow, idle_s: float) -> str:
    totals = row.totals
    clients = count(totals.get("n_clients", 0), "client")
    held = f"{count(totals.get('in_memory', 0), 'result')} ({size(totals.get('held_bytes', 0))}) held"
    timeout_us = totals.get("idle_timeout_us")
    minimum = totals.get("adaptive_minimum")
    adaptive = f", adaptive scaling keeps at least {count(minimum, 'worker')}" if minimum else ""
    if timeout_us:
        left_s = timeout_us / 1e6 - idle_s
        end = f"closes itself after {duration(timeout_us / 1e6)} of idleness, "
        end += f"in {duration(left_s)}" if left_s > 0 else "now"
    else:
        end = "no idle timeout set"
    return f"{clients} connected, {held}{adaptive}; {end}"


def _short(text: str, limit: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
