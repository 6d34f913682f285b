"""A profile as users get it: stacks and how often each was met, for people, flame graphs and speedscope.app."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from daskscope.records import Records

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
"""Of the file format, as speedscope names it."""

_COLUMNS = ("seconds", "count", "prefix", "stack")


class Profile(Records):
    """Stacks, heaviest first: `prefix` (null where several are together), `stack` (frames, outermost first), `count`
    (samples) and `seconds`.

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
        super().__init__(stacks, columns=_COLUMNS, url=url)
        self.total, self.cut, self.name = total, cut, name

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
            "shared": {"frames": [_frame(text) for text in numbers]},
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
    """With the task prefix as the outermost, where stacks of several are kept apart."""
    return [found["prefix"], *found["stack"]] if found["prefix"] else found["stack"]


def _folded(frame: str) -> str:
    """`;` parts frames, and a line break stacks."""
    return " ".join(frame.replace(";", ":").split()) or "?"


def _frame(text: str) -> dict[str, Any]:
    """`function (file:line)` in its parts; a text of another form is a name."""
    name, mark, rest = text.removesuffix(")").partition(" (")
    file, _, line = rest.rpartition(":")
    if mark and text.endswith(")") and file and line.isascii() and line.isdigit():
        return {"name": name, "file": file, "line": int(line)}
    return {"name": text}
