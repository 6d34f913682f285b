"""One thing as a dict that shows well: a cluster with its answers, a computation, prices, a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from daskscope.records import html
from daskscope.records.table import Records
from daskscope.records.values import CELL, Figure, printable, printable_lines, shown

QUESTIONS = {
    "finished": "Did it finish?",
    "exceptions": "What failed?",
    "cost": "What did it cost?",
    "time": "What took the time?",
    "running": "Why is it still running?",
}


class Record(dict[str, Any]):
    """A dict: `==` and JSON work as with any. `url` is the page with the same content, None where there is none."""

    def __init__(self, pairs: Mapping[str, Any], *, url: str | None = None) -> None:
        super().__init__(pairs)
        self.url = url

    def text(self, *, cell: int | None = None) -> str:
        """Answers first where there are any, then what is known, a line each, then lists of its own as tables."""
        facts = list(self._facts(cell))
        width = max((len(name) for name, _ in facts), default=0)
        parts = [
            "\n".join(f"{question} {sentence}" for question, sentence in self._answers()),
            "\n".join(f"{name:<{width}}  {text}" for name, text in facts),
            *(f"{place}\n{_indented(code)}" for place, code in self._codes()),
            *(f"{name}:\n{table.text(cell=cell)}" for name, table in self._tables()),
        ]
        return "\n\n".join(part for part in parts if part)

    def __repr__(self) -> str:
        return self.text(cell=2 * CELL)

    def _repr_html_(self) -> str:
        answers, facts = list(self._answers()), html.facts(self._facts(2 * CELL))
        tables = "".join(f"<h4>{html.said(name)}</h4>{table.table_html()}" for name, table in self._tables())
        codes = "".join(html.code(place, code) for place, code in self._codes())
        body = html.facts(answers) + html.folded("All that is known of it", facts) if answers else facts
        return html.page(body + codes + tables, url=self.url)

    def _answers(self) -> Iterator[tuple[str, str]]:
        """Questions and sentences."""
        said = self.get("answers")
        answers: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
        for name, question in QUESTIONS.items():
            if sentence := _sentence(answers.get(name)):
                yield question, sentence
        if sentence := _sentence(self.get("completeness")):
            yield "Is all of it here?", sentence

    def _facts(self, cell: int | None) -> Iterator[tuple[str, str]]:
        """What is neither an answer nor a table, nor empty."""
        for name, value in self.items():
            if _is_table(value) or (name in ("answers", "completeness") and isinstance(value, Mapping)):
                continue
            if text := shown(name, value, cell):
                yield printable(name), text

    def _tables(self) -> Iterator[tuple[str, Records]]:
        for name, value in self.items():
            if _is_table(value) and name != "code":
                yield printable(name), Records(value)

    def _codes(self) -> Iterator[tuple[str, str]]:
        """Where a piece of code stands, and what it says."""
        pieces: Any = self["code"] if _is_table(self.get("code")) else []
        for piece in pieces:
            if "diff" in piece:
                yield printable(f"code, from {piece.get('from')} to {piece.get('to')}"), str(piece["diff"])
            else:
                place = f"{piece.get('file') or 'code'}:{piece.get('line') or '?'}"
                yield printable(place), str(piece.get("text") or "(its text is not kept)")


class Comparison(Record):
    """Clusters or computations held against each other, a column for each: `items` (what they are), `measures`,
    `seconds` (by action), `groups` (by their share of the difference), `differs` (what is not the same), `code` (its
    changes), `profile` and `missing` (what is not known of them)."""

    def _tables(self) -> Iterator[tuple[str, Records]]:
        items: list[dict[str, Any]] = self["items"] if _is_table(self.get("items")) else []
        names = [str(item.get("name") or item.get("cluster_name") or item.get("id")) for item in items]
        heads = names if len(set(names)) == len(names) else [str(item.get("id")) for item in items]
        for name, value in self.items():
            if _is_table(value) and name != "code":
                yield printable(name), Records([_spread(row, heads) for row in value])


def _spread(row: Mapping[str, Any], heads: list[str]) -> dict[str, Any]:
    """A row with a column for each of the compared, in place of lists of a value for each; with units, for people."""
    spread = dict[str, Any]()
    unit = _UNITS.get(str(row.get("unit")), "")
    for name, value in row.items():
        if name == "unit":
            continue
        if isinstance(value, list) and len(value) == len(heads):
            values: list[Any] = value
            known = name if name != "values" else unit
            for head, one in zip(heads, values, strict=True):
                spread[head if name == "values" else f"{head} {name}"] = Figure(shown(known, one))
        else:
            spread[name] = value
    return spread


_UNITS = {"s": "duration", "bytes": "bytes", "USD": "dollars", "share": "share"}
"""Units to keys of the same unit."""


def _sentence(answer: object) -> str:
    return printable(str(answer.get("sentence", ""))) if isinstance(answer, Mapping) else ""


def _indented(code: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in printable_lines(code).split("\n"))


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
