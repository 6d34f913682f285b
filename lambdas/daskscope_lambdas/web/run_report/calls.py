"""A flame tree as an outline: what little a page can show of it, the heaviest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any

from daskscope_lambdas.service.flame import REST

MAX_CALLS = 40
LEAST_SHARE = 0.01
"""Of the whole: what is lighter is not shown."""
_ALL_OF_IT = 0.99
"""A call that is so much of its caller stands in one line with it."""

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """`names`: a call, then the one to which it leaves all but nothing, and so on; `place`: where the last of them
    is, as file:line."""

    names: list[str]
    place: str
    share_pct: int
    """Of all that was sampled, from 1 on."""
    callees: list[Call] = field(default_factory=list["Call"])


def outline(root: Node) -> list[Call]:
    """The calls of a tree's root. Empty where nothing was sampled."""
    whole = root["seconds"]
    if not whole:
        return []
    heavy: list[Node] = []
    waiting = [root]
    while waiting:
        found = [each for each in waiting.pop()["children"] if each["seconds"] >= LEAST_SHARE * whole]
        heavy += found
        waiting += found
    shown = {id(node) for node in nlargest(MAX_CALLS, heavy, key=lambda node: node["seconds"])}
    return [_call(node, whole, shown) for node in root["children"] if id(node) in shown]


def _call(node: Node, whole: float, shown: set[int]) -> Call:
    names, share_pct = [node["name"]], max(round(100 * node["seconds"] / whole), 1)
    while True:
        inner = [each for each in node["children"] if id(each) in shown]
        # What its only call leaves of it is too little to tell.
        if len(inner) != 1 or inner[0]["seconds"] < _ALL_OF_IT * node["seconds"] or inner[0]["name"] == REST:
            break
        node = inner[0]
        names.append(node["name"])
    place = f"{node['file']}:{node['line']}" if node["file"] else ""
    # Calls are 200 deep at most (flame.MAX_DEPTH), which Python's own stack bears.
    callees = [_call(each, whole, shown) for each in inner]
    return Call(names, place, share_pct, callees)
