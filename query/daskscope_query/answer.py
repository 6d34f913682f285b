"""What the lake answers, and why it could not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa


class MovedError(Exception):
    """A file went away while it was read: merged, sealed or made anew. Read the boundary again and ask again."""


class UnmadeError(ValueError):
    """No roll-up can be made of the rows: a figure fits no column. It will not fit the next time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`rows`: times are in UTC. `skipped`: keys of files that could not be read, whose rows are missing.

    `as_of`: receipt of the latest message that the lake held of what was asked about, None if it held none. `until`:
    that of the latest row that was looked at; asked again with it, the lake answers as if nothing had come since.
    """

    rows: pa.Table
    skipped: list[str]
    as_of: datetime | None = None
    until: datetime | None = None

    def records(self) -> list[dict[str, Any]]:
        """The rows as dicts; maps become dicts too."""
        return self.rows.to_pylist(maps_as_pydicts="strict")
