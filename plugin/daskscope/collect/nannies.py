"""Which nannies have an agent. A nanny outlives its workers, and an address outlives its nanny."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

MAX_NANNIES = 10_000
"""So many are remembered; of older ones it is asked again."""
TRIES = 2
"""So often one nanny is asked to take an agent."""


@dataclass
class _Nanny:
    """What is at an address."""

    id: str = ""
    """Dask's id of the nanny that answered last."""
    n_failed: int = 0
    is_asked: bool = False
    """Whether a call waits or is under way."""


class Nannies:
    """By address."""

    def __init__(self, lost: Counter[str]) -> None:
        self._lost = lost
        self._known: dict[str, _Nanny] = {}

    def look(self, address: str) -> bool:
        """A worker of this nanny came: whether to ask now who is there."""
        nanny = self._known.setdefault(address, _Nanny())
        if len(self._known) > MAX_NANNIES:
            del self._known[next(iter(self._known))]
        asked, nanny.is_asked = nanny.is_asked, True
        return not asked

    def wants(self, address: str, nanny_id: str) -> bool:
        """This nanny is there: whether to give it an agent."""
        nanny = self._known.setdefault(address, _Nanny())
        return nanny.id != nanny_id or 0 < nanny.n_failed < TRIES

    def done(self, address: str, nanny_id: str = "") -> None:
        """This nanny has an agent, or needs no more calls."""
        nanny = self._known.setdefault(address, _Nanny())
        nanny.is_asked = False
        if self.wants(address, nanny_id):
            nanny.id, nanny.n_failed = nanny_id, 0

    def failed(self, address: str, nanny_id: str = "") -> None:
        """It has none; empty id: it did not even answer. Its next worker is a reason to try again."""
        nanny = self._known.setdefault(address, _Nanny())
        nanny.is_asked = False
        if nanny.id != nanny_id:
            nanny.id, nanny.n_failed = nanny_id, 0
        nanny.n_failed += 1
        if nanny.n_failed == 1:
            self._lost["nannies-without-agent"] += 1
