"""Futures: some that depend on others, some that fail, some that heal, some that were scattered."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from distributed import wait

import daskscope
from tests.end_to_end.workloads.workload import totals


def squared(x: int) -> int:
    return x * x


def doubled(x: int) -> int:
    return 2 * x


def picky(x: int) -> float:
    if x % 3 == 0:
        raise ValueError(f"no {x % 2} today")
    return 1 / (x % 3 - 1)


def healing(mark: str) -> bool:
    """Fails the first time."""
    path = Path(mark)
    if not path.exists():
        path.touch()
        raise OSError("not yet")
    return True


class Futures:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def work(self, client: Any) -> None:
        squares = client.map(squared, range(40))
        twos = client.map(doubled, squares)
        fussy = client.map(picky, range(30))
        # These fail because of others: no failures of their own.
        after = client.map(doubled, fussy[:9], pure=False)
        healed = client.map(healing, [str(self.folder / f"healing-{n}") for n in range(5)], retries=1)
        scattered = client.scatter([b"a" * 100, b"b" * 200])
        self.kept = [*squares, *twos, *fussy, *after, *healed, *scattered]
        wait(self.kept)
        assert all(future.result() for future in healed)
        self.raised = Counter[tuple[str, str]]()
        for future in fussy:
            if error := future.exception():
                self.raised[type(error).__name__, repr(error)] += 1

    def check(self, cluster_id: int) -> None:
        told = totals(cluster_id)
        assert {name: told[name] for name in ("squared", "doubled", "picky", "healing", "bytes")} == {
            "squared": 40, "doubled": 49, "picky": 30, "healing": 5, "bytes": 2,
        }  # fmt: skip
        rows = [row for row in daskscope.list_exceptions(cluster_id=cluster_id) if row["prefix"] == "picky"]
        counted = Counter[tuple[str, str]]()
        for row in rows:
            counted[row["type"], row["text"]] += row["count"]
            assert row["origin"] == "user"
            assert "in picky" in row["traceback"]
            assert row["first"] <= row["last"]
        assert counted == self.raised
        others = {row["prefix"] for row in daskscope.list_exceptions(cluster_id=cluster_id)}
        assert not others & {"doubled", "healing"}
