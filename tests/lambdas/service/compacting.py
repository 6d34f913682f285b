"""What the tests of compaction share: two days of two accounts, a compactor, a store that dies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from daskscope import wire
from daskscope.testing import CLUSTER, event, exception, groups
from daskscope_lambdas.ports import ObjectStore, StoreError
from daskscope_lambdas.service import compact
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.testing import FakeClock
from tests.query.lake_rig import DAY_S, START, TOMORROW, LakeRig, envelope

OVER = START + 18 * 3600 + 1
"""Two hours past the midnight that ends DAY."""
OTHER = "f" * 31 + "2"


def compactor(rig: LakeRig, clock: FakeClock, objects: ObjectStore | None = None) -> Compactor:
    return Compactor(objects or rig.objects, rig.seals, clock, str(rig.root))


def totals(n: int) -> wire.Totals:
    return wire.Totals(n_workers=n, thread_us=n * 100, action_us={"compute": n * 50})


def fill(rig: LakeRig) -> None:
    """Two days, two accounts, repeats in one file, over files and over days, snapshots that grow."""
    for n in range(4):
        mine = envelope(
            seq=n,
            groups=groups({"no": 0, "n_tasks": 4 * n}, {"no": n + 1, "prefix": f"p{n}"}),
            computations=[wire.Computation(no=0, start_ms=START_MS, stop_ms=None if n < 3 else START_MS + 9)],
            events=[event(no=n)],
            received_at=START + n,
            totals=totals(n),
        )
        theirs = envelope("globex", 9, cluster=OTHER, seq=n, exceptions=[exception(no=n)], received_at=START + n)
        rig.write(mine, theirs, mine, name=f"a{n}")
        rig.write(mine, name=f"again{n}")
    rig.write(
        envelope(seq=3, received_at=START + DAY_S, events=[event(no=3)], totals=totals(3)),
        envelope(
            seq=4,
            received_at=START + DAY_S,
            groups=groups({"no": 0, "n_tasks": 20}),
            totals=wire.Totals(n_workers=1, thread_us=1_000, action_us={"compute": 170}),
        ),
        envelope("globex", 9, cluster=OTHER, seq=3, exceptions=[exception(no=3)], received_at=START + DAY_S),
        name="next-day",
    )


START_MS = int(START * 1000)


def everything(rig: LakeRig) -> dict[tuple[str, str], Any]:
    """What the two accounts can see of both days."""
    found: dict[tuple[str, str], Any] = {}
    for account in ("acme", "globex"):
        for query in ("computations", "groups", "events", "workers", "samples"):
            cluster = CLUSTER if account == "acme" else OTHER
            found[account, query] = rig.records(query, account=account, last=TOMORROW, cluster=cluster)
        for query in ("exceptions", "prefixes", "families"):
            found[account, query] = rig.records(query, account=account, last=TOMORROW)
    assert found["acme", "groups"]
    assert found["globex", "families"][0]["count"] == 12
    return found


def lake_files(rig: LakeRig) -> dict[str, bytes]:
    return {key: rig.objects.get(key) for top in ("open/", "sealed/", "rollups/") for key in rig.listed(top)}


class Dying:
    """An ObjectStore that dies right after its n-th change: what comes next finds all that was done before."""

    def __init__(self, objects: ObjectStore, n: int) -> None:
        self.objects, self.left = objects, n

    def _changed(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise StoreError("dead")

    def put_new(self, key: str, body: bytes) -> None:
        self.objects.put_new(key, body)
        self._changed()

    def delete(self, key: str) -> None:
        self.objects.delete(key)
        self._changed()

    def get(self, key: str) -> bytes:
        return self.objects.get(key)

    def list(self, prefix: str) -> Iterator[str]:
        return self.objects.list(prefix)


def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "PART_ROWS", 2)
