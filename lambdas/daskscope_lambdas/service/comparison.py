"""Clusters or computations held against each other: what differs, and what of it took the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Any

Record = dict[str, Any]
Values = list[Any]
"""One of each side, in their order; None where nobody knows."""

LEAST, MOST = 2, 8
"""Sides of a comparison."""
MAX_FRAMES = 30
"""Of the profile: those whose share changed most."""
MAX_LINES = 5_000
"""Of a side's code: above that a difference takes its time and tells nobody anything."""

UNITS = {
    "duration": "s",
    "dollars": "USD",
    "idle_dollars": "USD",
    "failed_dollars": "USD",
    "thread_seconds": "s",
    "task_seconds": "s",
    "n_computations": "count",
    "n_tasks": "count",
    "n_tasks_erred": "count",
    "peak_workers": "count",
    "workers_lost": "count",
    "peak_memory": "bytes",
    "bytes": "bytes",
    "input_bytes": "bytes",
    "spilled_bytes": "bytes",
}
"""The measures in their order, and what each is in; dollars are units of the sides' currency."""


@dataclass(frozen=True, slots=True)
class Work:
    """Of the tasks of one prefix: time of workers, tasks, and size of their results."""

    seconds: float
    n_tasks: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of what is compared. `item` is told as it is; `measures` are among UNITS, None for what nobody knows."""

    item: Record
    measures: Mapping[str, float | None]
    seconds: Mapping[str, float]
    """Of workers, by action."""
    work: Mapping[str, Work]
    """By prefix."""
    facts: Mapping[tuple[str, str], Any]
    """What it is and runs on, by kind (package, tag, ...) and name."""
    code: Sequence[str] | None
    """Texts in the order in which they are read; None where none is kept."""
    frames: Mapping[str, float] | None
    """Seconds that workers were seen in each frame itself, not in what it called; None without a profile."""
    currency: str = "USD"
    missing: Sequence[str] = field(default=())
    """Sentences on what is not known of it."""

    @property
    def id(self) -> str:
        return str(self.item["id"])


def compare(kind: str, sides: Sequence[Side]) -> Record:
    """The comparison of docs/reference/http-api.md; of code, each side is held against the first."""
    codes, of_code = _code(sides)
    profile, of_profile = _profile(sides)
    missing = [f"{side.id}: {sentence}" for side in sides for sentence in side.missing]
    return {
        "kind": kind,
        "items": [side.item for side in sides],
        "measures": _measures(sides),
        "seconds": _seconds(sides),
        "groups": _groups(sides),
        "differs": _differs(sides),
        "code": codes,
        "profile": profile,
        "missing": [*missing, *of_code, *of_profile],
    }


def _measures(sides: Sequence[Side]) -> list[Record]:
    """Those that any side has."""
    # Sides differ where somebody has just set prices in another currency.
    money = "/".join(dict.fromkeys(side.currency for side in sides))
    found = [
        {"name": name, "unit": money if unit == "USD" else unit, "values": [side.measures.get(name) for side in sides]}
        for name, unit in UNITS.items()
    ]
    return [measure for measure in found if any(value is not None for value in measure["values"])]


def _seconds(sides: Sequence[Side]) -> list[Record]:
    """By action, greatest spread first."""
    actions = sorted({action for side in sides for action in side.seconds})
    found = [{"action": action, "values": [side.seconds.get(action, 0.0) for side in sides]} for action in actions]
    return sorted(found, key=lambda each: (-_spread(each["values"]), each["action"]))


def _groups(sides: Sequence[Side]) -> list[Record]:
    """By prefix, greatest share of the difference first: its spread of seconds (greatest less least) of the sum of all
    spreads. None where nothing differs."""
    nothing = Work(0.0, 0, 0)
    rows = {prefix: [side.work.get(prefix, nothing) for side in sides] for side in sides for prefix in side.work}
    spreads = {prefix: _spread([each.seconds for each in works]) for prefix, works in rows.items()}
    whole = sum(spreads.values())
    return [
        {
            "prefix": prefix,
            "seconds": [each.seconds for each in rows[prefix]],
            "n_tasks": [each.n_tasks for each in rows[prefix]],
            "bytes": [each.bytes for each in rows[prefix]],
            "share": spreads[prefix] / whole if whole else None,
        }
        for prefix in sorted(rows, key=lambda prefix: (-spreads[prefix], prefix))
    ]


def _differs(sides: Sequence[Side]) -> list[Record]:
    """Facts that are not the same on all sides, by kind in the order in which they are told, then by name."""
    kinds = list(dict.fromkeys(what for side in sides for what, _ in side.facts))
    facts = sorted({fact for side in sides for fact in side.facts}, key=lambda fact: (kinds.index(fact[0]), fact[1]))
    found = [(what, name, [side.facts.get((what, name)) for side in sides]) for what, name in facts]
    return [
        {"what": what, "name": name, "values": values}
        for what, name, values in found
        if any(value != values[0] for value in values)
    ]


def _code(sides: Sequence[Side]) -> tuple[list[Record], list[str]]:
    """The difference of each side from the first in unified form, where there is one; and sentences on the others."""
    first, *others = sides
    lines = {side.id: [line for text in side.code or () for line in text.splitlines()] for side in sides}
    told: list[str] = []
    for side in sides:
        if not side.code:
            told.append(f"{side.id}: its code is not kept")
        elif len(lines[side.id]) > MAX_LINES:
            told.append(f"{side.id}: its code has {len(lines[side.id]):,} lines; up to {MAX_LINES:,} are compared")
    found: list[Record] = []
    for side in others:
        if all(each.code and len(lines[each.id]) <= MAX_LINES for each in (first, side)):
            changes = list(unified_diff(lines[first.id], lines[side.id], first.id, side.id, lineterm=""))
            if changes:
                found.append({"from": first.item["id"], "to": side.item["id"], "diff": "\n".join(changes)})
    return found, told


def _profile(sides: Sequence[Side]) -> tuple[list[Record], list[str]]:
    """Frames by how much their share of the samples changed, where every side has a profile; and sentences on those
    that have none."""
    told = [side.frames for side in sides if side.frames]
    if len(told) < len(sides):
        return [], [f"{side.id}: nothing of its profile is kept" for side in sides if not side.frames]
    wholes = [sum(frames.values()) for frames in told]
    shares = {
        frame: [frames.get(frame, 0.0) / whole for frames, whole in zip(told, wholes, strict=True)]
        for each in told
        for frame in each
    }
    top = sorted(shares, key=lambda frame: (-_spread(shares[frame]), frame))[:MAX_FRAMES]
    found = [
        {"frame": frame, "shares": shares[frame], "seconds": [frames.get(frame, 0.0) for frames in told]}
        for frame in top
    ]
    return found, []


def work_of(prefixes: Iterable[Mapping[str, Any]]) -> dict[str, Work]:
    """By prefix, of task prefixes as the API tells them."""
    return {each["prefix"]: Work(sum(each["seconds"].values()), each["n_tasks"], each["bytes"]) for each in prefixes}


def frames_of(stacks: Iterable[Mapping[str, Any]]) -> dict[str, float] | None:
    """Seconds by innermost frame, of stacks as the API tells them; None if there were none."""
    found = Counter[str]()
    for each in stacks:
        if each["stack"]:
            found[each["stack"][-1]] += each["seconds"]
    return dict(found) if found.total() > 0 else None


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)
