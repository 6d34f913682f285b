"""Why a worker went, told from what was said about it.

- `nanny-memory`: its nanny ended it, for it took too much memory;
- `worker-ttl`: it had not been heard of for `distributed.scheduler.worker-ttl`;
- `worker-fail-hard`: it gave itself up after a failure within Dask;
- `retired`: by `retire_workers`, which adaptive scaling calls too;
- `client-restart`, `client-restart-workers`: a client asked for it;
- what the worker gave as its reason to close: `nanny-close` (scaled down, or the cluster closed), `signal-15`,
  `worker-lifetime-reached`, `worker-close-gracefully`, `scheduler-close-worker`, ...;
- what made the scheduler remove it, if that was anything but the end of its connection;
- `lost`: its connection ended, and nothing tells why. A crash, `kill -9`, the kernel short of memory, a lost machine;
  also `dask worker --no-nanny` at SIGTERM, which takes no leave.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from daskscope.collect.payloads import as_name

LOST = "lost"

_STAMP = re.compile(r"-\d{9,}(\.\d+)?$")
_UNASKED = re.compile(
    r"worker-.*-fail-hard|worker-heartbeat-.*|worker-handle-scheduler-connection-broken|nanny-.*-(failed|timeout)"
)
"""Reasons to close that nobody asked for."""
_ASKED = frozenset({"client-restart", "client-restart-workers", "retired", "worker-close-gracefully"})
_GRACEFUL = frozenset({"worker-close-gracefully", "worker-lifetime-reached"})
"""Of a worker that asks for its own retirement."""
_SHORT = {
    "": LOST,
    "check-worker-ttl": "worker-ttl",
    "handle-worker-cleanup": LOST,
    "restart": "client-restart",
    "retire-workers": "retired",
    "scheduler-restart": "client-restart",
}
"""One word for what releases call differently."""


@dataclass(slots=True)
class Life:
    """What a worker's own topic says of it, from its coming to its going and a little longer."""

    since_s: float = 0.0
    closing: str = ""
    """Reason of its `closing-worker`."""
    retired: bool = False


def life_of(story: Iterable[tuple[float, Any]], died_s: float) -> Life:
    """`story`: the messages of its topic, youngest first. Others may have had the same address, before and after."""
    life = Life()
    for at_s, message in story:
        if not isinstance(message, Mapping):
            continue
        action = message.get("action")
        if action == "add-worker":
            if at_s <= died_s:
                life.since_s = at_s
                break
            life = Life()
        elif action == "closing-worker":
            life.closing = as_name(message.get("reason", ""))
        elif action == "retired":
            life.retired = True
    return life


def reason_of(life: Life, said: Mapping[Any, Any], *, killed: bool, silent: bool) -> tuple[str, bool]:
    """The reason, and whether somebody asked for it. `said`: Dask's `remove-worker`; `killed`: by its nanny for its
    memory; `silent`: not heard of for too long."""
    if killed:
        return "nanny-memory", False
    removal = _short(said.get("stimulus_id", ""))
    closing = _short(life.closing)
    if silent or "worker-ttl" in (removal, closing):
        return "worker-ttl", False
    if life.closing.endswith("-fail-hard"):
        return "worker-fail-hard", False
    told = [closing, removal]
    if (life.retired or removal == "retired") and not _GRACEFUL.intersection(told):
        told = ["retired"]  # whatever it says when it is then closed
    elif closing == "scheduler-remove-worker":
        told = [removal, closing]
    reason = next((word for word in told if word != LOST), LOST)
    asked = reason in _ASKED or (life.closing != "" and not _UNASKED.fullmatch(life.closing))
    return reason, asked or bool(said.get("expected", said.get("safe", False)))


def _short(word: object) -> str:
    word = _STAMP.sub("", as_name(word))
    return _SHORT.get(word, word)
