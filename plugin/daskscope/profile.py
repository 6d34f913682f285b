"""A profile as users get it: stacks and how often each was met, for people, flame graphs and speedscope.app."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from daskscope.flame import Node, picture, place, tree
from daskscope.records import Records
from daskscope.records.html import page

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
"""Of the file format, as speedscope names it."""


class Profile(Records):
    """Stacks, heaviest first: `prefix` (null where several are together; `user` where users are kept apart), `stack`
    (frames, outermost first), `count` (samples) and `seconds`.

    `total` and `cut` have `count` and `seconds`: of all stacks that the server has, and of rare ones that workers or
    the plugin left out, whatever their prefix.
    """

    def __init__(
        self,
        stacks: Iterable[dict[str, Any]],
        *,
        total: dict[str, Any],
        cut: dict[str, Any],
        name: str,
        url: str | None,
    ) -> None:
        super().__init__(stacks, url=url)
        apart = "user" if self and "user" in self[0] else "prefix"
        self._columns = ("seconds", "count", apart, "stack")
        self.total = total  # pyright: ignore[reportIncompatibleVariableOverride] - of stacks it has two figures
        self.cut, self.name = cut, name

    def tree(self) -> Node:
        """Each call once under its caller, the heaviest first: `name`, `file`, `line`, `count`, `seconds`, what it
        spent itself (`self_count`, `self_seconds`) and `children`."""
        return tree(self.name, ((_frames(found), found["count"], found["seconds"]) for found in self))

    def _notes(self, rows: int | None) -> list[str]:
        shown = sum(found["seconds"] for found in self)
        told = [f"{shown:,.1f} of {self.total['seconds']:,.1f} s"] if shown < self.total["seconds"] else []
        cut = self.cut["seconds"]
        return [*super()._notes(rows), *told, *([f"{cut:,.1f} s in rare stacks that were left out"] if cut else [])]

    def _repr_html_(self) -> str:
        if not self:
            return page("<p>No samples.</p>", (), self.url)
        return page(picture(self.tree()), self._notes(None), self.url)

    def folded(self) -> str:
        """A line for each stack as flame graph tools read it: frames joined by `;`, and the samples."""
        return "".join(f"{';'.join(_folded(frame) for frame in _frames(found))} {found['count']}\n" for found in self)

    def to_speedscope(self, path: str | Path | None = None) -> dict[str, Any]:
        """The profile in speedscope's file format, also written to `path` if one is given."""
        numbers: dict[str, int] = {}
        samples = [[numbers.setdefault(frame, len(numbers)) for frame in _frames(found)] for found in self]
        weights = [found["seconds"] for found in self]
        file = {
            "$schema": SCHEMA,
            "exporter": "daskscope",
            "name": self.name,
            "activeProfileIndex": 0,
            "shared": {"frames": [place(text) for text in numbers]},
            "profiles": [
                {
                    "type": "sampled",
                    "name": self.name,
                    "unit": "seconds",
                    "startValue": 0,
                    "endValue": sum(weights),
                    "samples": samples,
                    "weights": weights,
                }
            ],
        }
        if path is not None:
            Path(path).write_text(json.dumps(file), encoding="utf-8")
        return file


def _frames(found: dict[str, Any]) -> list[str]:
    """With the task prefix or user as the outermost, where stacks of several are kept apart."""
    apart = found.get("prefix") or found.get("user")
    return [apart, *found["stack"]] if apart else found["stack"]


def _folded(frame: str) -> str:
    """`;` parts frames, and a line break stacks."""
    return " ".join(frame.replace(";", ":").split()) or "?"
