"""What was done to an account by those who look after it: written into the lake before it is done, and only ever added.

An act that could not be written down is not done. One that failed after it was written stands there all the same: rows
tell what somebody set out to do.
"""

from __future__ import annotations

import itertools
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

import pyarrow as pa

from daskscope_lambdas.ports import Clock, ObjectStore, Role, Seals
from daskscope_lambdas.service.base62 import Random
from daskscope_lambdas.service.found import Asker, Found, days_since, found_in
from daskscope_lambdas.service.tokens import Principal
from daskscope_lambdas.service.write import Writer
from daskscope_query import files, layout
from daskscope_query.tables import AUDIT

Action = Literal[
    "account.create", "cluster.close", "data.delete", "login.approve", "login.link", "policy.set", "prices.set",
    "report.delete", "report.visibility", "token.create", "token.revoke", "token.rotate", "user.invite", "user.join",
    "user.remove", "user.role", "user.withdraw",
]  # fmt: skip
ACTIONS: tuple[Action, ...] = get_args(Action)


@dataclass(frozen=True, slots=True)
class Operator:
    """Who has the stores at hand, by the name that their machine knows them by; acts on `account`."""

    account: str
    name: str

    role: Role | None = None
    key_id: str | None = None

    @property
    def who(self) -> str:
        return f"operator {self.name}"


_ACTS = itertools.count()


class Audit:
    """Writes acts down. Safe to use from many threads."""

    def __init__(self, objects: ObjectStore, seals: Seals, clock: Clock, random: Random = secrets.token_bytes) -> None:
        self._writer, self._clock, self._random = Writer(objects, seals), clock, random

    def record(
        self,
        by: Principal | Operator,
        action: Action,
        target: str,
        detail: Mapping[str, Any] | None = None,
        address: str | None = None,
    ) -> None:
        """That `by` is about to do this in their account, to `target`: call it before it is done, and with no secret.

        `detail` is of JSON types, `address` whence the request came. Raises StoreError; then do not do it.
        """
        now = self._clock.now()
        at_ms = round(now * 1e3)
        # Acts of one process that come in the same millisecond keep their order.
        act = f"{at_ms:012x}{next(_ACTS) & 0xFFFF:04x}{self._random(4).hex()}"
        row = {
            "account": layout.checked_account(by.account),
            "cluster": "",
            "cluster_id": 0,
            "boot": act,
            "seq": 0,
            "received_at": at_ms,
            "at": at_ms,
            "actor": by.who,
            "role": by.role,
            "key_id": by.key_id or None,  # who joins has none before
            "address": address or None,
            "action": action,
            "target": target,
            "detail": json.dumps(dict(detail or {})),
        }
        rows = pa.Table.from_pylist([row], schema=AUDIT.schema)
        self._writer.put({(AUDIT.name, layout.day_of(now)): files.encode(AUDIT, rows, for_long=False)}, act)


class AuditReader:
    def __init__(self, asker: Asker, clock: Clock) -> None:
        self._asker, self._clock = asker, clock

    def acts(
        self,
        account: str,
        limit: int,
        offset: int,
        *,
        between: tuple[datetime | None, datetime | None] = (None, None),
        actor: str | None = None,
        action: str | None = None,
    ) -> Found:
        """What was done to an account, latest first; `between` counts both its ends."""
        since, until = between
        days = days_since(since, self._clock.now())
        wanted = {"since": since, "until": until, "actor": actor, "action": action, "limit": limit, "offset": offset}
        page = self._asker.ask("audit", account, days, **wanted)
        return found_in([_act(found) for found in page.records()], page)


def _act(found: Mapping[str, Any]) -> dict[str, Any]:
    told = ("actor", "role", "key_id", "address", "action", "target")
    return {"time": found["at"], **{name: found[name] for name in told}, "detail": json.loads(found["detail"])}
