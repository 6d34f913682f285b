"""Stacks as a tree of calls, and the tree as a picture: callers above what they called, as wide as they took time."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from daskscope.records.html import said

WIDTH, ROW, FONT = 960, 18, 11
"""Pixels of the picture, of a call's height and of its letters."""
MOST_ROWS = 30
LEAST = 1.0
"""Pixels: what would be narrower is not drawn."""
LETTER = 0.58
"""Width of a letter as a part of its height, on the safe side."""

Node = dict[str, Any]


def tree(name: str, stacks: Iterable[tuple[list[str], int, float]]) -> Node:
    """Each call once under its caller; `stacks`: frames (outermost first), samples, seconds.

    A node has `name`, `file` and `line` (None where a frame tells none), `count`, `seconds`, `self_count`,
    `self_seconds` and `children`, heaviest first.
    """
    root = _node(name)
    callees = dict[tuple[int, str], Node]()
    every = [root]
    for frames, count, seconds in stacks:
        node = root
        _add(node, count, seconds)
        for frame in frames:
            key = id(node), frame
            if key not in callees:
                callees[key] = _node(frame)
                node["children"].append(callees[key])
                every.append(callees[key])
            node = callees[key]
            _add(node, count, seconds)
        node["self_count"] += count
        node["self_seconds"] += seconds
    for node in every:
        node["children"].sort(key=lambda child: (-child["seconds"], child["name"]))
    return root


def place(text: str) -> dict[str, Any]:
    """`function (file:line)` in its parts; a text of another form is a name."""
    name, mark, rest = text.removesuffix(")").partition(" (")
    file, _, line = rest.rpartition(":")
    if mark and text.endswith(")") and file and line.isascii() and line.isdigit():
        return {"name": name, "file": file, "line": int(line)}
    return {"name": text}


def picture(root: Node) -> str:
    """The tree as SVG; hovering over a call tells where it is and how long it took."""
    if root["seconds"] <= 0:
        return ""
    boxes = list(_boxes(root))
    n_rows = 1 + max(row for _, row, _, _ in boxes)
    drawn = "".join(_box(node, row, x, width, root["seconds"]) for node, row, x, width in boxes)
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {n_rows * ROW}" style="width:100%;max-width:{WIDTH}px" '
        f'font-size="{FONT}" font-family="ui-monospace,monospace">{drawn}</svg>'
    )


def _node(frame: str) -> Node:
    known: Node = {"file": None, "line": None, **place(frame)}
    return {**known, "count": 0, "seconds": 0.0, "self_count": 0, "self_seconds": 0.0, "children": []}


def _add(node: Node, count: int, seconds: float) -> None:
    node["count"] += count
    node["seconds"] += seconds


def _boxes(root: Node) -> Iterator[tuple[Node, int, float, float]]:
    """Nodes, each with its row, and its left edge and width in pixels. Without recursion: stacks may be deep."""
    waiting = [(root, 0, 0.0)]
    while waiting:
        node, row, x = waiting.pop()
        width = WIDTH * node["seconds"] / root["seconds"]
        if width < LEAST or row >= MOST_ROWS:
            continue
        yield node, row, x, width
        for child in node["children"]:
            waiting.append((child, row + 1, x))
            x += WIDTH * child["seconds"] / root["seconds"]


def _box(node: Node, row: int, x: float, width: float, whole: float) -> str:
    where = f" ({node['file']}:{node['line']})" if node["file"] else ""
    told = f"{node['name']}{where}: {node['seconds']:.3g} s, {100 * node['seconds'] / whole:.1f} %"
    fits = int((width - 6) / (FONT * LETTER))
    name = node["name"] if len(node["name"]) <= fits else f"{node['name'][: fits - 1]}…" if fits > 3 else ""
    label = f'<text x="{x + 3:.1f}" y="{row * ROW + 13}" fill="#1b2430">{said(name)}</text>' if name else ""
    # A file's calls have one colour, warm and light enough for dark letters in either theme.
    hue = 15 + zlib.crc32(str(node["file"]).encode("utf-8", "replace")) % 45
    return (
        f'<g><title>{said(told)}</title><rect x="{x:.1f}" y="{row * ROW}" width="{max(width - 0.5, 0.5):.1f}" '
        f'height="{ROW - 1}" fill="hsl({hue} 85% 68%)"/>{label}</g>'
    )
