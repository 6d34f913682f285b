"""How much a message is once it is unpacked, which its bytes do not tell: an empty list has two, and 64 in memory."""

from __future__ import annotations

from collections.abc import Iterator

from daskscope import wire


def entries(message: wire.Message) -> Iterator[tuple[str, int]]:
    """Places, and how many rows and elements of lists and maps stand there; without what goes into the live row."""
    groups = message.groups
    n_groups, n_columns = len(groups.no), len(groups.states) + len(groups.action_us)
    yield "$.workers", len(message.workers.address)
    yield "$.groups", n_groups + n_columns * (n_groups + 1)
    yield "$.groups.dependencies", sum(map(len, groups.dependencies))
    yield "$.groups.types", sum(map(len, groups.types))
    yield "$.computations", sum(1 + len(each.code) + sum(map(len, each.code)) for each in message.computations)
    yield "$.exceptions", sum(1 + len(family.workers) for family in message.exceptions)
    yield "$.events", len(message.events)


def n_entries(message: wire.Message) -> int:
    return sum(n for _, n in entries(message))
