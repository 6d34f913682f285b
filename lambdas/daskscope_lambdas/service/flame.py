"""Stacks as a flame tree: each call once under its caller, with what was spent in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any

from daskscope_lambdas.service.found import Record

MAX_NODES = 1500
"""Of a tree: the heaviest. What was spent in others stands in a node of their caller that is named `REST`."""
LEAST_SHARE = 0.001
"""Of a whole tree: a lighter node is not told on its own."""
MAX_DEPTH = 200
"""Of a tree's calls: what goes deeper is rest. Workers send 64; JSON is read and written by recursion."""
REST = "(rest)"

_FRAME = re.compile(r"(.*?) \((.*):([0-9]{1,9})\)", re.DOTALL)


@dataclass(slots=True)
class _Node:
    name: str
    count: int = 0
    us: int = 0
    self_count: int = 0
    self_us: int = 0
    callees: dict[str, _Node] = field(default_factory=dict[str, "_Node"])


def trees(stacks: Iterable[tuple[str, Sequence[str], int, int]], totals: Mapping[str, tuple[int, int]]) -> list[Record]:
    """One tree for each root's name, heaviest first.

    `stacks`: root, frames (outermost first), samples, microseconds. `totals`: samples and microseconds that are known
    of a root; what its stacks do not have of them is rest. A node has `name`, `file` and `line` (null where a frame
    tells none), `count`, `seconds`, `self_count`, `self_seconds` and `children`, heaviest first: its own and its
    children's make up the whole.
    """
    roots: dict[str, _Node] = {name: _Node(name) for name in totals}
    for root, frames, count, us in stacks:
        _add(roots.setdefault(root, _Node(root)), frames, count, us)
    for name, (count, us) in totals.items():
        _pad(roots[name], count - roots[name].count, us - roots[name].us)
    told = _heaviest(roots.values())
    return [_record(root, told) for root in sorted(roots.values(), key=_weight)]


def _add(root: _Node, frames: Sequence[str], count: int, us: int) -> None:
    node = root
    node.count += count
    node.us += us
    for frame in [*frames[:MAX_DEPTH], REST] if len(frames) > MAX_DEPTH else frames:
        node = node.callees.setdefault(frame, _Node(frame))
        node.count += count
        node.us += us
    node.self_count += count
    node.self_us += us


def _pad(root: _Node, count: int, us: int) -> None:
    if count > 0 or us > 0:
        _add(root, [REST], max(count, 0), max(us, 0))


def _heaviest(roots: Iterable[_Node]) -> set[int]:
    """The identities of the nodes that are told. No node is heavier than its caller, so that of each that is told its
    callers are, too."""
    known = list(roots)
    least_us = LEAST_SHARE * sum(root.us for root in known)
    found: list[_Node] = []
    waiting = list(known)
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += [callee for callee in node.callees.values() if callee.us >= least_us]
    return {id(node) for node in nlargest(MAX_NODES, found, key=lambda node: node.us)} | {id(root) for root in known}


def _record(root: _Node, told: set[int]) -> Record:
    """Without recursion: a stack may be deeper than Python's own."""
    made = _plain(root)
    waiting: list[tuple[_Node, Record]] = [(root, made)]
    while waiting:
        node, record = waiting.pop()
        rest = _Node(REST)
        for callee in sorted(node.callees.values(), key=_weight):
            if id(callee) in told and callee.name != REST:
                child = _plain(callee)
                record["children"].append(child)
                waiting.append((callee, child))
            else:
                _add(rest, [], callee.count, callee.us)
        if rest.count or rest.us:
            record["children"].append(_plain(rest))
    return made


def _plain(node: _Node) -> dict[str, Any]:
    found = _FRAME.fullmatch(node.name)
    name, file, line = (found[1], found[2], int(found[3])) if found else (node.name, None, None)
    return {
        "name": name,
        "file": file,
        "line": line,
        "count": node.count,
        "seconds": node.us / 1e6,
        "self_count": node.self_count,
        "self_seconds": node.self_us / 1e6,
        "children": list[Record](),
    }


def _weight(node: _Node) -> tuple[int, str]:
    return -node.us, node.name
