"""A cluster's row as an item of the table, and what a beat changes in it."""

from __future__ import annotations

from typing import Any

from daskscope_lambdas.adapters.aws.order import place, placed
from daskscope_lambdas.adapters.aws.packing import pack, unpack
from daskscope_lambdas.adapters.aws.table import Item, Value
from daskscope_lambdas.adapters.fingerprint import fingerprint
from daskscope_lambdas.ports import Beat, ClusterRow, identity_key, start_of_day
from daskscope_lambdas.registry import KEY, LISTED_AT, LISTED_IN, LIVES_IN

LIFE = "all"
"""What LIVES_IN holds: only enrolment and an end write that index, so that one place is enough."""

_TEXTS = ("account", "boot", "phase")
_INTEGERS = ("id", "seq")
_MOMENTS = ("first_received_at", "last_received_at")
"""Ours, so numbers. What a sender says may be smaller than any number of DynamoDB: `_TOLD` are the text of one."""
_TOLD = ("made_at", "next_s", "uptime_s")
_PACKED = ("identity", "totals", "lost")


def key(uuid: str) -> str:
    return f"cluster/{uuid}"


def number_key(account: str, number: int) -> str:
    return f"number/{account}/{number}"


def list_of(account: str) -> str:
    return f"clusters/{account}"


def new_item(row: ClusterRow) -> dict[str, Value]:
    """A row before its first beat. Its start stands in its place in the list, and nowhere else."""
    plain: dict[str, Value] = {name: getattr(row, name) for name in (*_TEXTS, *_INTEGERS, *_MOMENTS)}
    plain |= {name: repr(getattr(row, name)) for name in _TOLD}
    packed: dict[str, Value] = {name: pack(getattr(row, name)) for name in _PACKED}
    places: dict[str, Value] = {
        KEY: key(row.uuid),
        LISTED_IN: list_of(row.account),
        LISTED_AT: place(row.started_at, row.id),
        LIVES_IN: LIFE,
    }
    return plain | packed | places


def grave(account: str, uuid: str, at: float) -> dict[str, Value]:
    """What stands in place of a deleted cluster's row: that it was deleted, and a way to know whose it was."""
    return {KEY: key(uuid), "owner": fingerprint(account, uuid), "deleted_at": at}


def is_deleted(item: Item) -> bool:
    return "deleted_at" in item


def uuid_of(item: Item) -> str:
    return item[KEY].removeprefix(key(""))


def row(item: Item) -> ClusterRow:
    values: dict[str, Any] = {name: item[name] for name in _TEXTS}
    values |= {name: int(item[name]) for name in _INTEGERS}
    # Rows of earlier releases lack `uptime_s`.
    values |= {name: float(item.get(name, 0.0)) for name in (*_MOMENTS, *_TOLD)}
    values |= {name: unpack(item[name]) for name in _PACKED}
    values["skew_s"] = float(item["skew_s"]) if "skew_s" in item else None
    values |= {"identity_of": identity_of(item), "skew_of": skew_of(item)}
    values["started_at"], _ = placed(item[LISTED_AT])
    values |= {name: item.get(name) for name in ("reason", "close_asked_by", "close_asked_reason")}
    return ClusterRow(uuid=uuid_of(item), close_asked_at=close_asked_at(item), **values)


def identity_of(item: Item) -> str:
    """Rows of earlier releases do not say it: there the identity is as new as the row."""
    if "identity_of" in item:
        return item["identity_of"]
    return identity_key(item["boot"], int(item["seq"])) if unpack(item["identity"]) else ""


def skew_of(item: Item) -> str:
    """As `identity_of`."""
    return item.get("skew_of") or (identity_key(item["boot"], int(item["seq"])) if "skew_s" in item else "")


def close_asked_at(item: Item) -> float | None:
    return float(item["close_asked_at"]) if "close_asked_at" in item else None


def close_asked(by: str, reason: str | None, at: float) -> tuple[dict[str, Value], str]:
    """Values and the change that writes down who asked the cluster to close."""
    values: dict[str, Value] = {"close_asked_at": at, "close_asked_by": by}
    if reason is not None:
        values["close_asked_reason"] = reason
    change = "SET " + ", ".join(f"#{name} = :{name}" for name in values)
    return values, change if reason is not None else f"{change} REMOVE #close_asked_reason"


def change(beat: Beat) -> tuple[dict[str, Value], str]:
    """Values and assignments, to follow a SET, of all but `last_received_at`. Raises ValueError for what is no JSON.

    For a message that is newer than the row: then so are its identity and skew.
    """
    values: dict[str, Value] = {
        "boot": beat.boot,
        "seq": beat.seq,
        "made_at": repr(beat.made_at),
        "next_s": repr(beat.next_s),
        "uptime_s": repr(beat.uptime_s),
        "phase": beat.phase,
        "totals": pack(beat.totals),
        "lost": pack(beat.lost),
    }
    gone: list[str] = []
    if beat.identity is not None:
        values |= _identity(beat, beat.identity)
    if beat.skew_s is not None:
        values |= _skew(beat, beat.skew_s)
    if beat.reason is not None:
        values["reason"] = beat.reason
    else:
        gone.append("reason")
    if beat.phase == "running":
        # What it is already, so that the index is not written; but for a cluster that comes back.
        values[LIVES_IN] = LIFE
    else:
        gone.append(LIVES_IN)
    assignments = ", ".join(f"#{name} = :{name}" for name in values)
    return values, f"{assignments} REMOVE {', '.join(f'#{name}' for name in gone)}" if gone else assignments


def change_of_older(beat: Beat, item: Item) -> tuple[dict[str, Value], str, str] | None:
    """Values, change and condition, for a message that is older than the row `item`; None if the row has all of it."""
    values: dict[str, Value] = {}
    conditions: list[str] = []
    if float(item["last_received_at"]) < start_of_day(beat.received_at):
        values["last_received_at"] = beat.received_at
        conditions.append("#last_received_at < :last_received_at")
    if beat.identity is not None and identity_of(item) < identity_key(beat.boot, beat.seq):
        values |= _identity(beat, beat.identity)
        conditions.append("(attribute_not_exists(#identity_of) OR #identity_of < :identity_of)")
    if beat.skew_s is not None and skew_of(item) < identity_key(beat.boot, beat.seq):
        values |= _skew(beat, beat.skew_s)
        conditions.append("(attribute_not_exists(#skew_of) OR #skew_of < :skew_of)")
    if not values:
        return None
    return values, "SET " + ", ".join(f"#{name} = :{name}" for name in values), " AND ".join(conditions)


def _identity(beat: Beat, identity: dict[str, Any]) -> dict[str, Value]:
    return {"identity": pack(identity), "identity_of": identity_key(beat.boot, beat.seq)}


def _skew(beat: Beat, skew_s: float) -> dict[str, Value]:
    return {"skew_s": repr(skew_s), "skew_of": identity_key(beat.boot, beat.seq)}
