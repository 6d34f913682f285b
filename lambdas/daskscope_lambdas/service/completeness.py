"""Whether all of a cluster arrived: its messages by their numbers, what it says it dropped, and how its end is known.

Computed on reading, so a message that was merely slow is missing only until it is there. Of days whose rows are kept no
longer nobody can tell: then what arrived is not known, and is neither whole nor missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.clocks import last_sign_at
from daskscope_lambdas.service.closing import IDLED
from daskscope_lambdas.service.found import Asker, Record
from daskscope_lambdas.service.records import iso, status
from daskscope_lambdas.service.words import count

WAITING_S = 300.0
"""So long after it was acknowledged a message may be on its way into the lake; later it is missing."""

_ENDS = {IDLED: "idle-closed", "close-requested": "close-requested"}
_FAILED = "failure-"
"""Dask's word for why a scheduler closes that failed begins so."""


def completeness(asker: Asker, row: ClusterRow, now: float) -> dict[str, Any]:
    """The record of docs/reference/http-api.md, JSON types only."""
    answer = asker.ask_of(row, "completeness")
    boots: dict[str, Record] = {found["boot"]: found for found in answer.records()}
    told = {boot: found["expected"] for boot, found in boots.items()}
    acknowledged = row.seq + 1 - told.get(row.boot, 0) if row.boot else 0
    waiting = max(acknowledged, 0) if now - row.last_received_at <= WAITING_S else 0
    expected = sum(told.values()) + max(acknowledged, 0)
    received = sum(found["received"] for found in boots.values())
    gone = asker.gone_of(row)
    found = {
        "expected": expected,
        "received": None if gone else received,
        "waiting": waiting,
        "missing": None if gone else expected - received - waiting,
        "merged": None if gone else received - sum(found["n_messages"] for found in boots.values()),
        "kept_from": f"{max(gone) + timedelta(1)}" if gone else None,
        "lost": _lost(row, boots),
        "end": end(row, now),
        "clock_skew_s": _skew(boots),
        "as_of": iso(answer.as_of),
        "skipped": answer.skipped,
    }
    return {"sentence": _sentence(found), **found}


def end(row: ClusterRow, now: float) -> dict[str, Any]:
    """How the cluster ended, when, and whether it said so itself; all null while it runs."""
    state = status(row, now)
    if state == "running":
        return {"how": None, "at": None, "proven": False}
    reason = row.reason or ""
    said = "failed" if reason.startswith(_FAILED) else _ENDS.get(reason, "closed")
    return {"how": said if state == "stopped" else "lost", "at": iso(last_sign_at(row)), "proven": state == "stopped"}


def _sentence(found: Mapping[str, Any]) -> str:
    """`Complete: 360 of 360 messages.`"""
    if not found["expected"]:
        return "No message has arrived."
    dropped = sum(found["lost"].values())
    if found["kept_from"]:
        losses = f", {dropped:,} losses told by the plugin" if dropped else ""
        return f"Not known any more: samples are kept from {found['kept_from']} on{losses}."
    told = [
        f"{found['received']:,} of {count(found['expected'], 'message')}",
        f"{found['waiting']:,} on the way" if found["waiting"] else "",
        f"{found['missing']:,} missing" if found["missing"] else "",
        f"{found['merged']:,} of them merged into later ones" if found["merged"] else "",
        f"{dropped:,} losses told by the plugin" if dropped else "",
    ]
    whole = "Incomplete" if found["missing"] or dropped else "Complete so far" if found["waiting"] else "Complete"
    unknown = "; its end was not told" if found["end"]["how"] == "lost" else ""
    return f"{whole}: {', '.join(filter(None, told))}{unknown}."


def _lost(row: ClusterRow, boots: Mapping[str, Record]) -> dict[str, int]:
    """Running totals of each boot, at its newest message."""
    told = {boot: found["lost"] or {} for boot, found in boots.items()}
    if row.boot not in boots or row.seq >= boots[row.boot]["expected"]:
        told[row.boot] = row.lost
    total: Counter[str] = Counter()
    for lost in told.values():
        total.update(lost)
    return {reason: n for reason, n in sorted(total.items()) if n}


def _skew(boots: Mapping[str, Record]) -> dict[str, float] | None:
    found = next(iter(boots.values()), None)
    if found is None or found["skew_median_ms"] is None:
        return None
    return {name: found[f"skew_{name}_ms"] / 1e3 for name in ("median", "least", "most")}
