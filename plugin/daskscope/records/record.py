"""One thing as a dict that shows well: a cluster with its answers, a computation, prices, a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from daskscope.records import html
from daskscope.records.table import Records
from daskscope.records.values import CELL, Figure, printable, shown

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
            *(f"{name}:\n{table.text(cell=cell)}" for name, table in self._tables()),
        ]
        return "\n\n".join(part for part in parts if part)

    def __repr__(self) -> str:
        return self.text(cell=2 * CELL)

    def _repr_html_(self) -> str:
        answers, facts = list(self._answers()), html.facts(self._facts(2 * CELL))
        tables = "".join(f"<p>{escape(name)}</p>{table.table_html()}" for name, table in self._tables())
        body = html.facts(answers) + html.folded("All that is known of it", facts) if answers else facts
        return html.page(body + tables, url=self.url)

    def _answers(self) -> Iterator[tuple[str, str]]:
        """Questions and sentences."""
        answers: Mapping[str, Any] = self.get("answers") or {}
        for name, question in QUESTIONS.items():
            if name in answers:
                yield question, printable(str(answers[name].get("sentence", "")))
        if completeness := self.get("completeness"):
            yield "Is all of it here?", printable(str(completeness.get("sentence", "")))

    def _facts(self, cell: int | None) -> Iterator[tuple[str, str]]:
        """What is neither an answer nor a table, nor empty."""
        for name, value in self.items():
            if name in ("answers", "completeness") or _is_table(value):
                continue
            if text := shown(name, value, cell):
                yield printable(name), text

    def _tables(self) -> Iterator[tuple[str, Records]]:
        for name, value in self.items():
            if _is_table(value):
                yield printable(name), Records(value)


class Comparison(Record):
    """Clusters or computations held against each other, a column for each: `items` (what they are), `measures`,
    `seconds` (by action), `groups` (by their share of the difference), `differs` (what is not the same), `code`."""

    def _tables(self) -> Iterator[tuple[str, Records]]:
        heads = [str(item.get("name") or item.get("id")) for item in self.get("items", ())]
        heads = heads if len(set(heads)) == len(heads) else [str(item.get("id")) for item in self.get("items", ())]
        for name, value in self.items():
            if _is_table(value):
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


_UNITS = {"s": "duration", "bytes": "bytes", "dollars": "dollars", "$": "dollars", "share": "share"}
"""Units to keys of the same unit."""


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
