"""Whose clock tells what: the server's one, and the scheduler's two.

A scheduler's wall clock may be off, and may be set while it runs. So what lasted is told by one clock that is never
set (the scheduler's monotonic one; the server's for silence since), and what happened at a moment by the server's,
where a message said what the scheduler's showed when it was sent. What a scheduler told of its own past (computations,
events, lines, ...) stays as it told it, and is compared with nothing but itself.
"""

from __future__ import annotations

from daskscope import wire
from daskscope_lambdas.ports import ClusterRow

RIGHT_S = 2.0
"""A clock that is off by no more counts as right: the way of a message may take as long."""


def skew_ms(sent_at_ms: int | None, now: float) -> int | None:
    """The server's clock less the scheduler's, the way included; None if the sender did not say."""
    return None if sent_at_ms is None else round(now * 1e3) - sent_at_ms


def started_at(message: wire.Message, skew_ms: int | None, now: float) -> float:
    """Epoch seconds at which the scheduler started: as it says, or by the server's clock if its own is off.

    Settled once, when the cluster gets its number: lists sort by it, and what sorts must not move. It is reckoned back
    from the message by monotonic time, so that any message gives the same, whichever comes first, also if the clock
    was set meanwhile.
    """
    told_ms = _started_ms(message)
    if skew_ms is None:
        return told_ms / 1e3
    made_ms = message.made_at_ms + skew_ms
    reckoned_ms = made_ms - round(message.uptime_us / 1e3) - max(_boot_ms(message.boot) - told_ms, 0)
    if abs(reckoned_ms - told_ms) <= RIGHT_S * 1e3:
        return told_ms / 1e3
    return min(max(reckoned_ms / 1e3, 0.0), now)


def last_sign_at(row: ClusterRow) -> float:
    """Epoch seconds of the last sign of life: a message that came late out of a spool was made earlier than it came."""
    if not row.made_at:
        return row.last_received_at
    skew_s = row.skew_s or 0.0
    if abs(skew_s) <= RIGHT_S:
        return min(row.made_at, row.last_received_at)
    # Two machines' clocks meet here: nothing was made before the start, or after it came.
    return min(max(row.made_at + skew_s, row.started_at), row.last_received_at)


def told_up_s(row: ClusterRow) -> float:
    """Seconds from the scheduler's start to its newest message, by its monotonic clock."""
    started_ms = row.identity.get("started_at_ms")
    if not row.uptime_s:  # told to a release that kept no uptime
        return max(0.0, row.made_at - (row.started_at if started_ms is None else started_ms / 1e3))
    before_boot_ms = 0 if started_ms is None else max(_boot_ms(row.boot) - started_ms, 0)
    return row.uptime_s + before_boot_ms / 1e3


def _started_ms(message: wire.Message) -> int:
    """As the scheduler says; the earliest that is known where it does not."""
    if message.started_at_ms:
        return message.started_at_ms
    return message.identity.started_at_ms if message.identity else message.made_at_ms


def _boot_ms(boot: str) -> int:
    """Epoch milliseconds at which a boot began, by the scheduler's clock; 0 if its name does not tell."""
    try:
        return int(boot[:12], 16)
    except ValueError:
        return 0
