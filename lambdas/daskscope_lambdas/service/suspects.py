"""What is written together, and in which order, so that a message that ends the process takes few others along.

What comes for the first time goes first, as one. What comes again may be what ended the process: it goes in groups, the
more of them the oftener it came, in an order of its own each time. What was written before the process ended is deleted
by then (handlers/write.py), so that with each try about half of those that only kept bad company are done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from daskscope_lambdas.ports import Delivery

_GROUPS_A_TRY = 4
"""Each group is a file a table: at the last try forty of them."""


def in_turn(deliveries: Sequence[Delivery]) -> list[Sequence[Delivery]]:
    """All of `deliveries`, in groups to be written one after the other; none is empty."""
    first = [each for each in deliveries if each.receive_count <= 1]
    again = sorted((each for each in deliveries if each.receive_count > 1), key=_place)
    n = _GROUPS_A_TRY * max((each.receive_count for each in again), default=0)
    return [group for group in (first, *(again[start::n] for start in range(n))) if group]


def _place(delivery: Delivery) -> str:
    return hashlib.sha256(f"{delivery.id} {delivery.receive_count}".encode()).hexdigest()
