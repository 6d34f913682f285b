"""A message's content of every kind there is: each message tells something new, and something that changed."""

from __future__ import annotations

import hashlib
from typing import Any

from daskscope import testing, wire

N_TASKS = 2
IDENTIFIED = (0, 3)
"""Messages that tell who the cluster is, the second because the server asked again."""
CODE_EVERY = 8
"""Messages from one new piece of code to the next."""
OF_ONE = {"messages": 1, "events": 1, "log-lines": 1, "tasks": N_TASKS, "exceptions": 1, "deaths": 1, "profiles": 1}
"""What is missing where a message is, as `lost` counts it."""


def content(seq: int, now_ms: int) -> dict[str, Any]:
    """Fields of message `seq`, as keywords for `testing.message`."""
    code = _code(seq - seq % CODE_EVERY)
    frame = wire.Frame(code=code.hash, file="job.py", line=seq + 1)
    return {
        "identity": testing.identity(name=f"demo-{seq}") if seq in IDENTIFIED else None,
        "logs": testing.logs({"no": seq, "text": f"line {seq}"}),
        "events": [testing.event(no=seq, at_ms=now_ms)],
        "exceptions": [testing.exception(no=seq, text=f"failed in {seq}", count=1)],
        "deaths": [testing.death(no=seq, worker=f"tcp://10.0.0.{seq}:1")],
        "tasks": testing.tasks(N_TASKS, first_no=N_TASKS * seq, nbytes=[seq, seq + 1]),
        "profiles": [testing.profile(from_ms=now_ms - 10_000, to_ms=now_ms, count=[seq + 1, seq + 2])],
        "groups": testing.groups(
            {"no": 0, "n_tasks": seq + 1, "states": {"memory": seq + 1, "released": seq}},
            {"no": 1 + seq, "name": f"load-{seq}", "prefix": "load", "states": {"erred": seq + 1}},
        ),
        "computations": [
            wire.Computation(no=no, start_ms=now_ms, stop_ms=now_ms + seq, code=[[frame]])
            for no in (seq - seq % 3, seq + 1_000_000)
        ],
        "codes": [] if seq % CODE_EVERY else [code],
        "spans": [
            testing.span(stop_ms=now_ms),
            testing.span(id=f"5f0c9f2e-0000-4000-8000-{seq + 2:012d}", stop_ms=now_ms),
        ],
        "metrics": testing.metrics({"value": float(seq)}, {"activity": f"part-{seq}", "value": 1.5}),
        "members": [
            testing.member(no=0, n_threads=seq, environment=0, hardware=0),
            testing.member(no=seq + 1, role="client", id=f"client-{seq}", environment=1),
        ],
        "environments": [testing.environment(python=f"3.11.{seq}"), testing.environment(python="3.12.0")],
        "hardware": [wire.Hardware(cores=seq + 1, memory_bytes=1 << 30)],
        "workers": testing.workers([f"tcp://127.0.0.1:{40_001 + n}" for n in range(2)], memory_mib=[seq, seq + 1]),
    }


def _code(seq: int) -> wire.Code:
    text = f"def step():\n    return {seq}\n"
    return wire.Code(hash=hashlib.sha256(text.encode()).hexdigest()[:32], text=text)
