"""B9: messages shuffled, repeated and late."""

from __future__ import annotations

from tests.faults import orders
from tests.faults.row import Row


def run(short: bool, most: int = 1000) -> Row:
    n = min(5 if short else 1000, most)
    found = orders.run(n)
    return Row(
        id="B9",
        what=f"a cluster's messages, of several boots and in parts, in {n:,} random orders with repeats and delays",
        tried=int(found["posts"]),
        lost=int(found["lost"]),
        doubled=int(found["doubled"]),
        held=found["states"] == 1 and found["orders"] == n and not (found["lost"] or found["doubled"]),
        figures={name: found[name] for name in ("orders", "messages", "states")},
    )
