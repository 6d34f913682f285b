"""What the list functions return: a plain list of plain dicts that also shows well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, SupportsIndex, overload

from dask.utils import format_bytes

SHOWN = 10
"""Rows that a repr shows; it says how many more there are."""
CELL = 60
"""Characters of a cell that a repr shows; a longer one ends in `…`."""

_SIZES = frozenset(
    {"memory", "memory_limit", "peak_memory", "held_bytes", "bytes", "managed", "unmanaged", "spilled", "gpu_memory"}
)
_TIMES = frozenset(
    {"created", "stopped", "start", "stop", "first", "last", "time", "last_seen", "expires", "revoked"}
    | {"joined", "left", "enqueued", "idle_since"}
)
_NUMBERS = (int, float)


class Records(list[dict[str, Any]]):
    """Records as a list of dicts: `==`, JSON and `pandas.DataFrame(records)` work as with any list; slices are Records.

    `columns` are the keys shown in tables (all of the first row's if not given), `url` the page with the same content.
    """

    def __init__(
        self, rows: Iterable[dict[str, Any]] = (), *, columns: Sequence[str] | None = None, url: str | None = None
    ) -> None:
        super().__init__(rows)
        self._columns = columns
        self.url = url

    @property
    def columns(self) -> list[str]:
        """The keys that a table shows."""
        return list(self._columns or (self[0] if self else ()))

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice, /) -> Records: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> dict[str, Any] | Records:
        if isinstance(index, slice):
            return Records(super().__getitem__(index), columns=self._columns, url=self.url)
        return super().__getitem__(index)

    def text(self, *, rows: int | None = None, cell: int | None = None) -> str:
        """An aligned plain-text table, at most `rows` rows and `cell` characters a cell (None: all)."""
        names = self.columns
        body = [[shown(name, row.get(name), cell) for name in names] for row in self[:rows]]
        right = [all(isinstance(row.get(name), (*_NUMBERS, type(None))) for row in self) for name in names]
        widths = [max(map(len, column)) for column in zip(names, *body, strict=True)]
        lines = [
            "  ".join(
                text.rjust(width) if to_right else text.ljust(width)
                for text, width, to_right in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in [names, *body]
        ]
        return "\n".join([*lines, *self._notes(rows)])

    def _notes(self, rows: int | None) -> list[str]:
        """Lines under a table of so many rows."""
        hidden = 0 if rows is None else len(self) - rows
        return [f"... {hidden} more"] if hidden > 0 else []

    def __repr__(self) -> str:
        return self.text(rows=SHOWN, cell=CELL) if self else "[]"

    def _repr_html_(self) -> str:
        if not self:
            return "<p>No records.</p>"
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(shown(n, row.get(n), CELL))}</td>" for n in self.columns) + "</tr>"
            for row in self[:SHOWN]
        )
        rest = "".join(f"<p>{escape(line)}</p>" for line in self._notes(SHOWN))
        link = f'<p><a href="{escape(self.url)}">{escape(self.url)}</a></p>' if self.url else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}{link}"


def printable(text: str) -> str:
    """A task's exception may hold escape sequences: none of them reaches the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def shown(name: str, value: Any, limit: int | None = None) -> str:
    """A record's value as text for people, cut to `limit` characters; `name` is its key, which tells its unit."""
    text = printable(_text(name, value))
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in _SIZES and isinstance(value, int):
        return format_bytes(value)
    if name in _TIMES and isinstance(value, str):
        return value.partition(".")[0].replace("T", " ")
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    if isinstance(value, Mapping):
        pairs: Mapping[Any, Any] = value
        # Its keys are task states and actions, and no fields: `memory` is a count here.
        return ", ".join(f"{key}={_text('', item)}" for key, item in pairs.items())
    if isinstance(value, (list, tuple)):
        items: Sequence[Any] = value
        return ", ".join(_text(name, item) for item in items)
    return str(value)
