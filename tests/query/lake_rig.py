"""A lake in a folder, written message by message, for tests of what reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from daskscope.testing import START_MS, boot_at, message
from daskscope_lambdas.adapters.local import DiskObjects
from daskscope_lambdas.ports import Conflict, Deletion
from daskscope_lambdas.service.envelope import Envelope
from daskscope_lambdas.service.write import Writer
from daskscope_query.lake import Lake
from daskscope_query.tables import CATALOG

START = START_MS / 1000
DAY = date(2026, 11, 21)
TOMORROW = DAY + timedelta(1)
DAY_S = 86_400.0
OTHER = "0" * 31 + "2"
"""A second cluster."""


class MemorySeals:
    def __init__(self, day: date | None = None) -> None:
        self.day = day

    def boundary(self) -> date | None:
        return self.day

    def advance(self, expected: date | None, day: date) -> None:
        if expected != self.day:
            raise Conflict(f"{self.day}")
        self.day = day


class MemoryDeletions:
    def __init__(self) -> None:
        self.asked: list[Deletion] = []

    def ask(self, deletion: Deletion) -> None:
        self.asked.append(deletion)

    def pending(self, account: str | None = None) -> Sequence[Deletion]:
        return [each for each in self.asked if account in (None, each.account)]

    def swept(self, deletion: Deletion, day: date) -> None:
        self.asked = [replace(each, swept_through=day) if _same(each, deletion) else each for each in self.asked]

    def done(self, deletion: Deletion) -> None:
        self.asked = [each for each in self.asked if not _same(each, deletion)]


def _same(one: Deletion, other: Deletion) -> bool:
    return (one.account, one.cluster) == (other.account, other.cluster)


def envelope(account: str = "acme", cluster_id: int = 1, received_at: float = START, **changes: Any) -> Envelope:
    return Envelope(account=account, cluster_id=cluster_id, received_at=received_at, message=message(**changes))


def catalog(users: Mapping[str, str], **columns: Any) -> pa.Table:
    """The table `catalog` with a cluster of each UUID and its user, numbered from 1 on; all run."""
    plain: dict[str, Any] = {
        "account": "acme", "boot": boot_at(START_MS), "started_at": _at(START), "first_received_at": _at(START),
        "last_received_at": _at(START), "seen_at": _at(START), "next_s": 1e6, "phase": "running",
        "quality": "estimated",
    }  # fmt: skip
    rows = [
        {**plain, "cluster": uuid, "cluster_id": no, "name": f"of {user}", "user": user, **columns}
        for no, (uuid, user) in enumerate(users.items(), 1)
    ]
    return pa.Table.from_pylist(rows, CATALOG.schema)


def _at(epoch_s: float) -> datetime:
    return datetime.fromtimestamp(epoch_s, UTC)


class LakeRig:
    """`write` makes one batch of what it is given; batches are numbered."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.objects = DiskObjects(root)
        self.seals = MemorySeals()
        self.deletions = MemoryDeletions()
        self.batches = 0

    def write(self, *envelopes: Envelope, name: str | None = None) -> None:
        self.batches += 1
        Writer(self.objects, self.seals).write(envelopes, name or f"batch-{self.batches}")

    def listed(self, prefix: str = "") -> list[str]:
        return list(self.objects.list(prefix))

    def lake(self) -> Lake:
        return Lake(str(self.root), self.seals.boundary())

    def ask(self, query: str, account: str = "acme", first: date = DAY, last: date = DAY, **params: Any) -> Any:
        """Without a catalog `given`, it is empty."""
        given = {"catalog": CATALOG.schema.empty_table(), **params.pop("given", {})}
        return self.lake().ask(query, account=account, days=(first, last), given=given, **params)

    def records(self, query: str, **params: Any) -> list[dict[str, Any]]:
        return self.ask(query, **params).records()
