"""Two messages in a row as one, where there is no room to keep each."""

from __future__ import annotations

from typing import Any

from daskscope.slices import COLUMNS, MAPS, OBJECTS, PROFILES, REFERRED, Plain, n_rows, some, with_referred

SNAPSHOTS = {
    "groups": ("no",),
    "metrics": ("span", "context", "prefix", "activity", "unit"),
    "logs": ("no",),
}
"""Tables whose rows are told apart by these columns: the newer of two alike counts."""


def joined(earlier: Plain, later: Plain) -> Plain | None:
    """The later message with all that the earlier tells beside its gauges; None where they are no neighbours, one of
    them is in parts, or rows of tasks stand for different numbers of them."""
    if not _are_neighbours(earlier, later):
        return None
    tasks = _tasks(earlier.get("tasks", {}), later.get("tasks", {}))
    if tasks is None:
        return None
    both = dict(later)
    both["merged"] = later.get("merged", 0) + earlier.get("merged", 0) + 1
    if "identity" in earlier:
        both.setdefault("identity", earlier["identity"])
    found: Plain = {"tasks": tasks, PROFILES: earlier.get(PROFILES, []) + later.get(PROFILES, [])}
    for name, key in SNAPSHOTS.items():
        found[name] = _table(name, key, earlier.get(name, {}), later.get(name, {}))
    for name, key in OBJECTS.items():
        if name != "members":
            newest = {entry[key]: entry for entry in earlier.get(name, []) + later.get(name, [])}
            found[name] = list(newest.values())
    both |= {name: value for name, value in found.items() if value}
    for name in ("members", *REFERRED):
        both.pop(name, None)
    return both | _members(earlier, later)


def _are_neighbours(earlier: Plain, later: Plain) -> bool:
    return (
        all(earlier[name] == later[name] for name in ("v", "cluster", "boot"))
        and earlier["seq"] + 1 == later["seq"] - later.get("merged", 0)
        and not any(each.get(name) for each in (earlier, later) for name in ("part", "halved"))
        and earlier.get("phase") != "closed"
    )


def _table(name: str, key: tuple[str, ...], earlier: Plain, later: Plain) -> Plain:
    if not (earlier and later):
        return later or earlier
    newer = set(_keys(key, later))
    rows = [row for row, told in enumerate(_keys(key, earlier)) if told not in newer]
    return _appended(name, some(name, earlier, rows), later)


def _keys(key: tuple[str, ...], table: Plain) -> list[tuple[Any, ...]]:
    return list(zip(*(table[column] for column in key), strict=True))


def _appended(name: str, earlier: Plain, later: Plain) -> Plain:
    if not earlier:
        return later
    n_earlier, n_later = n_rows(earlier, name), n_rows(later, name)
    both = later | {column: earlier[column] + later[column] for column in COLUMNS[name] if column in later}
    for column in MAPS[name]:
        before, after = earlier.get(column, {}), later.get(column, {})
        both[column] = {
            key: before.get(key, [0] * n_earlier) + after.get(key, [0] * n_later) for key in {**before, **after}
        }
    return both


def _tasks(earlier: Plain, later: Plain) -> Plain | None:
    if not (earlier and later):
        return later or earlier
    n_earlier = n_rows(earlier, "tasks")
    if earlier.get("weight", 1) != later.get("weight", 1):
        return None
    if earlier.get("first_no", 0) + n_earlier != later.get("first_no", 0):
        return None
    both = _appended("tasks", earlier, later)
    addresses = list(dict.fromkeys(earlier["addresses"] + later["addresses"]))
    place = {address: number for number, address in enumerate(addresses)}
    both["addresses"] = addresses
    both["worker"] = [place[tasks["addresses"][number]] for tasks in (earlier, later) for number in tasks["worker"]]
    both["first_no"] = earlier.get("first_no", 0)
    both["from_ms"] = from_ms = min(earlier.get("from_ms", 0), later.get("from_ms", 0))
    both["start_ms"] = [
        tasks.get("from_ms", 0) - from_ms + start_ms for tasks in (earlier, later) for start_ms in tasks["start_ms"]
    ]
    return both


def _members(earlier: Plain, later: Plain) -> Plain:
    """The newest of each, with what they refer to."""
    lists = {name: earlier.get(name, []) + later.get(name, []) for name in REFERRED}
    newest: dict[int, Plain] = {member["no"]: member for member in earlier.get("members", [])}
    for member in later.get("members", []):
        moved = dict(member)
        for key, name in zip(("environment", "hardware"), REFERRED, strict=True):
            if member.get(key) is not None:
                moved[key] = member[key] + len(earlier.get(name, []))
        newest[member["no"]] = moved
    return with_referred(list(newest.values()), lists)
