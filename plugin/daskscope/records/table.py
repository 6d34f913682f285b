"""What the list functions return: a plain list of plain dicts that also shows well."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Self, SupportsIndex, overload

from daskscope.records import arrow, html
from daskscope.records.values import CELL, SHOWN, Figure, is_number, printable, shown


class Records(list[dict[str, Any]]):
    """Records as a list of dicts: `==`, JSON and `pandas.DataFrame(records)` work as with any list; slices are Records.

    `columns` are the keys shown in tables (all of the first row's if not given), `url` the page with the same content
    (None where there is none), `total` how many match where the server says so, whatever the limit, `note` a sentence
    on all of them that stands under a table.
    """

    def __init__(
        self,
        rows: Iterable[dict[str, Any]] = (),
        *,
        columns: Sequence[str] | None = None,
        url: str | None = None,
        total: int | None = None,
        note: str | None = None,
    ) -> None:
        super().__init__(rows)
        self._columns = columns
        self.url = url
        self.total = total
        self.note = note

    @property
    def columns(self) -> list[str]:
        """The keys that a table shows."""
        return list(self._columns or (self[0] if self else ()))

    def showing(self, columns: Sequence[str]) -> Self:
        """The same records, with these keys in tables."""
        found = copy.copy(self)
        found._columns = columns
        return found

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice, /) -> Records: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> dict[str, Any] | Records:
        if isinstance(index, slice):
            return Records(super().__getitem__(index), columns=self._columns, url=self.url)
        return super().__getitem__(index)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of all keys: times are datetimes in UTC, durations Timedeltas, what is nested stays as it
        is. Without a record, of `columns`. Raises ImportError without pandas."""
        return arrow.to_pandas(self, self.columns)

    def to_arrow(self) -> Any:
        """A pyarrow.Table of all keys: times are timestamps in UTC, durations durations, what is nested structs, lists
        and maps, or JSON where rows are of different shapes. Without a record, of `columns`. Raises ImportError without
        pyarrow."""
        return arrow.to_arrow(self, self.columns)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """By which whoever asks for Arrow's C stream takes the records (`pyarrow.RecordBatchReader.from_stream`).

        polars, DuckDB and pandas see a list in them first: give these `to_arrow()`.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def text(self, *, rows: int | None = None, cell: int | None = None) -> str:
        """An aligned plain-text table, at most `rows` rows and `cell` characters a cell (None: all)."""
        names = self.columns
        body = [[shown(name, row.get(name), cell) for name in names] for row in self[:rows]]
        right = [is_right(name, self) for name in names]
        heads = [*map(printable, names)]
        widths = [max(map(len, column)) for column in zip(heads, *body, strict=True)]
        lines = [
            "  ".join(
                text.rjust(width) if to_right else text.ljust(width)
                for text, width, to_right in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in [heads, *body]
        ]
        return "\n".join([*lines, *self._notes(rows)])

    def _notes(self, rows: int | None) -> list[str]:
        """Lines under a table of so many rows."""
        hidden = 0 if rows is None else len(self) - rows
        more = [f"... {hidden} more"] if hidden > 0 else []
        return [*more, *([printable(self.note)] if self.note else [])]

    def __repr__(self) -> str:
        return self.text(rows=SHOWN, cell=CELL) if self else "[]"

    def table_html(self) -> str:
        """The table alone, of the first rows, as HTML."""
        right = {name for name in self.columns if is_right(name, self)}
        return html.table(self.columns, self[:SHOWN], right)

    def _repr_html_(self) -> str:
        return html.page(self.table_html() if self else "<p>No records.</p>", self._notes(SHOWN), self.url)


def is_right(name: str, rows: Iterable[dict[str, Any]]) -> bool:
    """Whether a column stands to the right: all of it are numbers, or what a cluster cost."""
    values = [row.get(name) for row in rows]
    return all(value is None or is_number(value) or isinstance(value, Figure) or name == "cost" for value in values)
