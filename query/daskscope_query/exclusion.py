"""What of an account nobody shall see any more, although its bytes may still be there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc

from daskscope_query.tables import MOMENT


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Rows of `clusters`, and those that were received until `until` (UTC)."""

    clusters: frozenset[str] = frozenset()
    until: datetime | None = None
    swept_through: date = date.min
    """Sealed days up to this one hold no such row, and no roll-up that counts one."""

    def rows(self, schema: pa.Schema) -> pc.Expression | None:
        """Which rows of a table or roll-up these are; None if it tells neither cluster nor receipt."""
        found: list[pc.Expression] = []
        if self.clusters and "cluster" in schema.names:
            found.append(pc.field("cluster").isin(pa.array(sorted(self.clusters), pa.string())))
        if self.until is not None and "received_at" in schema.names:
            found.append(pc.field("received_at") <= pa.scalar(self.until, MOMENT))
        if not found:
            return None
        return found[0] if len(found) == 1 else found[0] | found[1]
