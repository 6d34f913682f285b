"""Seals as the lake itself tells them.

The boundary is in the registry, and no server is asked for it. But `compact` writes down of a day that it found it
sealed (`sealed-at.json`), and only after that was done do open files of the day go (service/compact.py). So the newest
such day is the boundary, or before it; and of each day after it the open files are all there still, with what came of
it late, which stands in a later open day by then. Read so, each row counts once all the same.
"""

from __future__ import annotations

from datetime import date

from daskscope_lambdas.adapters.direct.mapping import refuse
from daskscope_lambdas.adapters.direct.place import Place
from daskscope_query import layout


class LakeSeals:
    """Looks anew on each call, so that a day that was sealed meanwhile is read as one."""

    advance = staticmethod(refuse)

    def __init__(self, place: Place) -> None:
        self._place = place

    def boundary(self) -> date | None:
        names = self._place.folders(layout.SEALS)
        days = [day for name in names if (day := layout.day_in(f"{layout.SEALS}{name}/"))]
        return next((day for day in reversed(days) if self._place.has(layout.sealed_at_key(day))), None)
