"""Messages of many clusters, each with one event of its own, and where they are found again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta

from daskscope import wire
from daskscope.compression import compress
from daskscope.testing import boot_at, event, identity, message
from daskscope_query import session
from daskscope_query.lake import Lake
from daskscope_query.questions import Question

ACCOUNT = "acme"
BOOT = boot_at(1_795_248_000_000)

Id = tuple[str, int]
"""Cluster and seq: each has one boot here. The event has its message's number."""


def made(cluster: str, seq: int) -> wire.Message:
    who = identity(name=cluster[-6:]) if seq == 0 else None
    return message(cluster=cluster, boot=BOOT, seq=seq, identity=who, events=[event(no=seq)])


def body(id: Id) -> tuple[bytes, str]:
    """As the plugin posts it, and in which encoding."""
    return compress(wire.encode(made(*id)))


def ids(n: int, clusters: int, first: int = 0) -> list[Id]:
    """`n` of them in the order of making: of each of `clusters` the first message, then of each the second, ..."""
    return [(f"{first + i % clusters:032x}", i // clusters) for i in range(n)]


def found(root: str, boundary: date | None, first: date, last: date, table: str = "samples") -> Counter[Id]:
    """What whoever asks sees of these days, by the lake's own rule: how many rows of each message."""
    no = "seq" if table == "samples" else "no"
    query = Question(f'SELECT cluster, {no} AS no FROM "{table}"', (table,))
    lake = Lake(root, boundary)
    answer = lake._answer(query, session.Scope(ACCOUNT, first, lake._with_late(first, last)), {})
    assert not answer.skipped, answer.skipped
    rows = answer.rows
    return Counter(zip(rows.column("cluster").to_pylist(), rows.column("no").to_pylist(), strict=True))


def owed(obligations: Iterable[Id], root: str, boundary: date | None, first: date) -> tuple[int, int]:
    """How many of these are missing, and how many rows are there twice, in samples or events of a week from `first`."""
    tables = [found(root, boundary, first, first + timedelta(7), table) for table in ("samples", "events")]
    lost = {one for one in obligations if not all(table[one] for table in tables)}
    return len(lost), sum(n - 1 for table in tables for n in table.values())
