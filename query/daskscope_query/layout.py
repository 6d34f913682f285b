"""Where things lie in the lake: the only file that knows paths.

    open/<table>/day=<arrival day>/<name>.parquet                 small files of all accounts, only ever added
    sealed/<table>/account=<a>/day=<day>/part-<n>.parquet         a day of an account, sorted by cluster, never changed
    rollups/<rollup>/account=<a>/day=<day>/part-<n>.parquet       what team views need of a sealed day
    rollups/<rollup>/account=<a>/day=<day>/unmade                 nothing could be made of it: made anew when asked for
    seals/day=<day>/plan.json, sealed-at.json                     which open files a sealed day was made of; when
    late/day=<day>/to=<day>                                       rows of the one day stand in the other: they came late
    code/account=<a>/<hash>                                       one piece of user code, encrypted

A day is the UTC day on which the server received a message. Days up to the boundary are sealed, later ones are open.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

OPEN = "open/"
SEALED = "sealed/"
ROLLUPS = "rollups/"
SEALS = "seals/"
CODE = "code/"
LATE = "late/"
"""Under it, an empty object for each pair of days such that rows received on the one stand in the other."""

_DAY = re.compile(r"/day=(\d{4}-\d{2}-\d{2})/")
_ACCOUNT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def day_of(at: float) -> date:
    """The UTC day of epoch seconds `at`."""
    return datetime.fromtimestamp(at, UTC).date()


def days(first: date, last: date) -> list[date]:
    """All days from `first` to `last`, both included."""
    return [first + timedelta(n) for n in range((last - first).days + 1)]


def open_prefix(table: str, day: date) -> str:
    return f"{OPEN}{table}/day={day:%Y-%m-%d}/"


def open_key(table: str, day: date, name: str) -> str:
    return f"{open_prefix(table, day)}{name}.parquet"


def late_key(table: str, day: date, name: str, received: date) -> str:
    """An open key for what was received on a day that is sealed by now; its batch may hold `name` itself."""
    return open_key(table, day, f"{name}-late-{received:%Y-%m-%d}")


def late_mark_key(received: date, day: date) -> str:
    return f"{LATE}day={received:%Y-%m-%d}/to={day:%Y-%m-%d}"


def late_mark(key: str) -> tuple[date, date] | None:
    """The two days of `late_mark_key`, None for another key."""
    found = re.fullmatch(rf"{LATE}day=([\d-]{{10}})/to=([\d-]{{10}})", key)
    return (date.fromisoformat(found[1]), date.fromisoformat(found[2])) if found else None


def sealed_prefix(table: str, account: str, day: date | None = None) -> str:
    return f"{SEALED}{table}/account={checked_account(account)}/" + (f"day={day:%Y-%m-%d}/" if day else "")


def sealed_key(table: str, account: str, day: date, part: int) -> str:
    return f"{sealed_prefix(table, account, day)}part-{part}.parquet"


def rollup_prefix(rollup: str, account: str) -> str:
    return f"{ROLLUPS}{rollup}/account={checked_account(account)}/"


def rollup_key(rollup: str, account: str, day: date, part: int) -> str:
    return f"{rollup_prefix(rollup, account)}day={day:%Y-%m-%d}/part-{part}.parquet"


def unmade_key(rollup: str, account: str, day: date) -> str:
    """An empty object that says that the roll-up of this sealed day could not be made."""
    return f"{rollup_prefix(rollup, account)}day={day:%Y-%m-%d}/unmade"


def plan_key(day: date) -> str:
    """What `compact` decided before it wrote the first file of a sealed day."""
    return f"{SEALS}day={day:%Y-%m-%d}/plan.json"


def sealed_at_key(day: date) -> str:
    """When `compact` first saw the day sealed."""
    return f"{SEALS}day={day:%Y-%m-%d}/sealed-at.json"


def code_key(account: str, code_hash: str) -> str:
    return f"{CODE}account={checked_account(account)}/{code_hash}"


def day_in(key: str) -> date | None:
    """The day that a key's path names, None if it names none."""
    found = _DAY.search("/" + key)
    return date.fromisoformat(found[1]) if found else None


def checked_account(account: str) -> str:
    """`account` itself. Raises ValueError if it can be no account's name."""
    if not _ACCOUNT.fullmatch(account):
        raise ValueError(f"{account!r} is no account name: 1 to 63 of a-z, 0-9 and '-'.")
    return account
