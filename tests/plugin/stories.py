"""Messages as one scheduler makes them, a run at a time: numbered on, snapshots told again as they grow."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import strategies as st

from daskscope import testing, wire
from daskscope.slices import Plain
from daskscope_lambdas.service.envelope import Envelope
from daskscope_lambdas.service.rows import to_rows
from daskscope_query import tables

few = st.integers(0, 4)
Row = tuple[str, str]


@st.composite
def run(draw: st.DrawFn, n_messages: int) -> list[wire.Message]:
    """`n_messages` in a row, each with any part, few of each; every number that stands for itself is given once."""
    told = Counter[str]()

    def numbers(kind: str) -> list[int]:
        n = draw(few)
        told[kind] += n
        return [*range(told[kind] - n, told[kind])]

    return [_message(draw, seq, numbers) for seq in range(n_messages)]


def everything(seq: int, **changes: Any) -> wire.Message:
    """Something of each kind, with texts that no other message has."""
    text = f"{seq:032x}"
    values: dict[str, Any] = {
        "profiles": [testing.profile(frames=[text], prefix=["sum"], stack=[[0]], count=[3])],
        "tasks": testing.tasks(2, first_no=2 * seq, weight=3),
        "groups": testing.groups({"no": seq, "name": text}),
        "metrics": testing.metrics({"prefix": text}),
        "spans": [testing.span(id=text)],
        "events": [testing.event(no=seq, detail=text)],
        "logs": testing.logs({"no": seq, "text": text}),
        "exceptions": [testing.exception(no=seq, text=text, count=4)],
        "deaths": [testing.death(no=seq, name=text)],
    }
    return testing.message(seq=seq, **values | changes)


def _message(draw: st.DrawFn, seq: int, numbers: Any) -> wire.Message:
    addresses = [f"tcp://w{n}" for n in draw(st.lists(few, unique=True, max_size=5))]
    again = draw(st.lists(few, unique=True, max_size=5))
    frame = wire.Frame(code="ab" * 16, file="job.py", line=seq)
    return testing.message(
        seq=seq,
        identity=testing.identity() if seq == 0 or draw(st.booleans()) else None,
        totals=wire.Totals(n_workers=len(addresses), n_tasks=seq),
        workers=_workers(draw, addresses),
        groups=testing.groups(*({"no": n, "n_tasks": seq, "states": {f"s{n % 3}": 1 + seq}} for n in again)),
        metrics=testing.metrics(*({"prefix": str(n), "span": [None, "s"][n % 2], "value": float(seq)} for n in again)),
        spans=[testing.span(id=str(n), stop_ms=seq) for n in again],
        computations=[wire.Computation(no=n, start_ms=n, stop_ms=seq, code=[[frame]]) for n in again],
        members=_members(draw, again),
        environments=[testing.environment(python=f"{seq}.{n}") for n in range(2)] if again else [],
        hardware=[wire.Hardware(cores=seq + 1)] if again else [],
        tasks=_tasks(draw, numbers("tasks"), addresses or ["tcp://w"]),
        logs=testing.logs(*({"no": n, "text": f"line {n}"} for n in numbers("logs"))),
        exceptions=[testing.exception(no=n, count=n + 1) for n in numbers("exceptions")],
        deaths=[testing.death(no=n) for n in numbers("deaths")],
        events=[testing.event(no=n) for n in numbers("events")],
        codes=[wire.Code(hash=f"{n:032}", text="x.compute()") for n in again],
        profiles=[_profile(draw) for _ in range(draw(st.integers(0, 2)))],
        lost={"refused": seq} if seq else {},
    )


def _workers(draw: st.DrawFn, addresses: list[str]) -> wire.Workers:
    names = ["cpu_pct", "net_read_kib_s", "net_write_kib_s", "disk_read_kib_s", "disk_write_kib_s", "loop_interval_ms"]
    if draw(st.booleans()):
        names += ["gpu_pct", "gpu_memory_mib"]
    n = len(addresses)
    return testing.workers(addresses, **{name: draw(st.lists(few, min_size=n, max_size=n)) for name in names})


def _members(draw: st.DrawFn, numbers: list[int]) -> list[wire.Member]:
    environment, hardware = st.none() | st.integers(0, 1), st.none() | st.just(0)
    return [testing.member(no=n, environment=draw(environment), hardware=draw(hardware)) for n in numbers]


def _tasks(draw: st.DrawFn, numbers: list[int], addresses: list[str]) -> wire.Tasks:
    if not numbers:
        return wire.Tasks()
    n = len(numbers)
    worker = draw(st.lists(st.integers(0, len(addresses) - 1), min_size=n, max_size=n))
    from_ms = testing.START_MS + draw(few)
    return testing.tasks(n, first_no=numbers[0], from_ms=from_ms, addresses=addresses, worker=worker, weight=2)


def _profile(draw: st.DrawFn) -> wire.Profile:
    n = draw(st.integers(1, 4))
    stack = draw(st.lists(st.lists(st.integers(0, 2), max_size=3), min_size=n, max_size=n))
    return testing.profile(prefix=["sum"] * n, stack=stack, count=[*range(n)], cut=draw(st.integers(0, 1)))


def decoded(plain: Plain) -> wire.Message:
    """As a server reads it."""
    return wire.decode(json.dumps(plain).encode())


def rows(messages: list[wire.Message], *but: str) -> Counter[Row]:
    """All rows of these messages by table, without some columns."""
    envelopes = [Envelope(account="a", cluster_id=1, received_at=0.0, message=message) for message in messages]
    return Counter(
        (table.name, repr({name: value for name, value in row.items() if name not in but}))
        for table, found in to_rows(envelopes)
        for row in found.to_pylist()
    )


def last_by_key(messages: list[wire.Message], *but: str) -> dict[str, list[Any]]:
    """What the lake makes of them: of rows with the same key the one with the highest `seq`."""
    envelopes = [Envelope(account="a", cluster_id=1, received_at=0.0, message=message) for message in messages]
    kept: dict[str, list[Any]] = {}
    for table, found in to_rows(envelopes):
        newest: dict[str, Any] = {}
        for row in sorted(found.to_pylist(), key=lambda row: row["seq"]):
            newest[repr([row[name] for name in table.key])] = row
        told = [{name: value for name, value in row.items() if name not in but} for row in newest.values()]
        kept[table.name] = sorted(told, key=repr)
    return kept


GAUGES = {tables.SAMPLES.name, tables.WORKERS.name}
