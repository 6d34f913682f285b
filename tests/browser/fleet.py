"""A small fleet's messages, as plugins would post them: one of each kind of cluster that a page must show."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx

from daskscope import wire
from daskscope.compression import compress
from daskscope.testing import boot_at, event, exception, groups, identity, message, workers

ADDRESSES = [f"tcp://10.0.0.{n}:4000{n}" for n in range(4)]
SOURCE = """import dask.dataframe as dd

df = dd.read_parquet("s3://weather/2026")
out = df.groupby("station").temperature.mean().compute()
"""
CODE = wire.Code(hash=hashlib.sha256(SOURCE.encode()).hexdigest()[:32], text=SOURCE)
HOSTILE = '"><img src=x onerror="document.title=1"><script>document.title=1</script>'
GIB = 1 << 30


class Fleet:
    """Posts to a running server; times count back from `now_ms`."""

    def __init__(self, url: str, token: str, now_ms: int) -> None:
        self._http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False)
        self._now_ms = now_ms

    def close(self) -> None:
        self._http.close()

    def post(self, posted: wire.Message) -> dict[str, Any]:
        body, encoding = compress(wire.encode(posted))
        answer = self._http.post(wire.PATH, content=body, headers={"Content-Encoding": encoding})
        answer.raise_for_status()
        return answer.json()

    def busy(self) -> dict[str, Any]:
        """Running: 40 messages, two computations, exceptions, spilling, a worker that left."""
        start = self._now_ms - 400_000
        answer: dict[str, Any] = {}
        for seq in range(41):
            present = ADDRESSES if 5 < seq < 30 else ADDRESSES[:2]
            memory = [900 + 55 * min(seq, 35) + 40 * n for n in range(len(present))]
            totals = wire.Totals(
                n_workers=len(present), n_threads=4 * len(present), n_clients=1, memory_bytes=sum(memory) << 20,
                spilled_bytes=max(0, seq - 25) << 26, memory_limit_bytes=len(present) * 4 * GIB,
                processing=max(0, 12 - seq // 5), waiting=max(0, 300 - 9 * seq), queued=4, in_memory=40, erred=2,
                held_bytes=3 * GIB, n_computations=2, n_groups=4, n_tasks=1200 + 10 * seq, n_tasks_erred=5,
                thread_us=seq * 160_000_000, peak_memory_bytes=9 * GIB, peak_workers=4,
                action_us={"compute": seq * 90_000_000, "transfer": seq * 21_000_000, "disk-write": seq * 4_000_000},
            )  # fmt: skip
            answer = self.post(
                message(
                    cluster="a" * 32, boot=boot_at(start), seq=seq, made_at_ms=start + 10_000 * seq, totals=totals,
                    next_s=10.0 if seq < 40 else 600.0,  # no more come, and a slow machine is not to make it lost
                    identity=identity(name="nightly-etl", started_at_ms=start) if seq == 0 else None,
                    workers=workers(present, memory_mib=memory), lost={"events over the cap": 12} if seq > 30 else {},
                    **self._happenings(start) if seq == 40 else {},
                )
            )  # fmt: skip
        return answer

    def _happenings(self, start: int) -> dict[str, Any]:
        frames = [[wire.Frame(code=CODE.hash, file="/home/ada/etl.py", line=4)]]
        second = {"start_ms": start + 200_000, "stop_ms": start + 390_000, "computation": 1}
        return {
            "computations": [
                wire.Computation(no=0, start_ms=start + 5_000, stop_ms=start + 190_000, code=frames),
                wire.Computation(no=1, start_ms=start + 200_000, code=frames),
            ],
            "codes": [CODE],
            "groups": groups(
                {"no": 0, "name": "read-parquet-6f1", "prefix": "read-parquet", "n_tasks": 800, "nbytes": 9 * GIB,
                 "states": {"memory": 20, "released": 780},
                 "action_us": {"compute": 2_000_000_000, "disk-read": 300_000_000}},
                {"no": 1, "name": "shuffle-transfer-22", "prefix": "shuffle-transfer", "n_tasks": 400,
                 "nbytes": 2 * GIB,
                 "action_us": {"compute": 500_000_000, "transfer": 800_000_000, "serialize": 90_000_000},
                 "dependencies": [0], **second},
                {"no": 2, "name": "mean-agg-9c", "prefix": "mean-agg", "n_tasks": 20, "nbytes": 4 << 20, **second,
                 "states": {"waiting": 12, "processing": 3, "erred": 5}, "action_us": {"compute": 70_000_000},
                 "dependencies": [1]},
            ),
            "exceptions": [
                exception(no=0, text="'price'", type="KeyError", count=3, group=2, first_ms=start + 300_000,
                          last_ms=start + 310_000, traceback='  File "etl.py", line 61, in clean\n    row["price"]\n'),
                exception(no=1, text="out of memory", type="MemoryError", count=2, group=2, first_ms=start + 320_000,
                          last_ms=start + 320_000),
            ],
            "events": [event(no=n, at_ms=start + 20_000 * n, worker=ADDRESSES[n], detail='{"n": 1}') for n in range(4)],
        }  # fmt: skip

    def idle(self) -> dict[str, Any]:
        start = self._now_ms - 9_000_000
        totals = wire.Totals(
            n_workers=8, n_threads=32, n_clients=1, memory_bytes=20 * GIB, memory_limit_bytes=64 * GIB, in_memory=240,
            held_bytes=18 * GIB, idle_since_ms=self._now_ms - 8_040_000, n_tasks=31_000, thread_us=288_000_000_000,
            action_us={"compute": 9_000_000_000}, peak_memory_bytes=28 * GIB, peak_workers=8,
        )  # fmt: skip
        who = identity(name="idle-etl", user="alice", started_at_ms=start)
        return self._one("b" * 32, start, totals, who)

    def finished(self) -> dict[str, Any]:
        start = self._now_ms - 90_000_000
        totals = wire.Totals(
            n_tasks=88_000, n_tasks_erred=41, thread_us=120_000_000_000, action_us={"compute": 80_000_000_000},
            peak_memory_bytes=30 * GIB, peak_workers=4,
        )  # fmt: skip
        who = identity(name="xgb-tune", user="bob", started_at_ms=start)
        return self._one("c" * 32, start, totals, who, phase="closed", reason="scheduler-close")

    def lost(self) -> dict[str, Any]:
        """Announces its next message in a tenth of a second, and never sends it."""
        start = self._now_ms - 50_000_000
        totals = wire.Totals(
            n_workers=2, n_threads=8, n_tasks=4000, processing=8, waiting=1100, memory_bytes=15 * GIB,
            memory_limit_bytes=16 * GIB, thread_us=9_000_000_000, peak_memory_bytes=15 * GIB, peak_workers=2,
            action_us={"compute": 1_000_000_000},
        )  # fmt: skip
        who = identity(name="nb-explore", user="carol", started_at_ms=start)
        return self._one("d" * 32, start, totals, who, next_s=0.1)

    def hostile(self) -> dict[str, Any]:
        start = self._now_ms - 60_000
        who = identity(
            name=HOSTILE, user=HOSTILE, host=HOSTILE, started_at_ms=start, tags={HOSTILE: HOSTILE}, python=HOSTILE,
            dashboard="javascript:document.title=1", versions={HOSTILE: HOSTILE},
        )  # fmt: skip
        code = wire.Code(hash=hashlib.sha256(HOSTILE.encode()).hexdigest()[:32], text=HOSTILE)
        return self._one(
            "e" * 32, start, wire.Totals(n_workers=1, n_tasks_erred=1, action_us={HOSTILE: 5_000_000}), who,
            workers=workers([HOSTILE], name=[HOSTILE]), codes=[code], lost={HOSTILE: 3}, reason=HOSTILE,
            computations=[
                wire.Computation(no=0, start_ms=start, code=[[wire.Frame(code=code.hash, file=HOSTILE, line=1)]])
            ],
            groups=groups({"no": 0, "name": HOSTILE, "prefix": HOSTILE, "action_us": {HOSTILE: 5_000_000},
                           "states": {HOSTILE: 4}}),
            exceptions=[exception(type=HOSTILE, text=HOSTILE, traceback=HOSTILE, key=HOSTILE, prefix=HOSTILE)],
            events=[event(topic=HOSTILE, action=HOSTILE, worker=HOSTILE, detail=HOSTILE)],
        )  # fmt: skip

    def _one(self, cluster: str, start: int, totals: wire.Totals, who: wire.Identity, **changes: Any) -> dict[str, Any]:
        made_at_ms = self._now_ms if changes.get("phase") != "closed" else start + 3_720_000
        return self.post(
            message(
                cluster=cluster, boot=boot_at(start), made_at_ms=made_at_ms, totals=totals, identity=who,
                **{"next_s": 600.0, "workers": wire.Workers(), **changes},
            )
        )  # fmt: skip
