"""Where things lie in the lake: the only file that knows paths.

    open/<table>/day=<arrival day>/<name>.parquet                 small files of all accounts, only ever added
    sealed/<table>/account=<a>/day=<day>/part-<n>.parquet         a day of an account, sorted by cluster, never changed
    rollups/<rollup>/account=<a>/day=<day>/part-<n>.parquet       what team views need of a sealed day
    .../part-<n>-r<revision>-<digest>.parquet                     either once more, without what was deleted from it
    rollups/<rollup>/account=<a>/day=<day>/unmade                 nothing could be made of it: made anew when asked for
    sealed/<table>/account=<a>/day=<day>/gone                     its rows, running totals, were kept no longer
    seals/day=<day>/plan.json, sealed-at.json                     which open files a sealed day was made of; when
    catalog/account=<a>/<as of, epoch ms>-<digest>.parquet        all clusters of an account; the newest counts
    prices/all/<as of, epoch ms>-<digest>.yaml                    prices that the installation set; the newest counts
    prices/account=<a>/<as of, epoch ms>-<digest>.yaml            likewise an account's own
    late/day=<day>/to=<day>                                       rows of the one day stand in the other: they came late
    seals/day=<day>/tidied.json                                   what is to be done once a day was done after it
    code/account=<a>/<hash>                                       one piece of user code, encrypted
    code/account=<a>/<hash>-<day>                                 it came again when it was about to go since that day
    unused/account=<a>/day=<day>.json                             code that nothing named from that day on: about to go
    dead/account=<a>/cluster=<uuid>/<letter>/<message>.json       a message that could not be kept, and why
    dead/unread/<letter>/<message>.json                           likewise, of which not even the sender could be read

A day is the UTC day on which the server received a message. Days up to the boundary are sealed, later ones are open.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

OPEN = "open/"
SEALED = "sealed/"
ROLLUPS = "rollups/"
SEALS = "seals/"
CODE = "code/"
UNUSED = "unused/"
DEAD = "dead/"
CATALOG = "catalog/"
PRICES = "prices/"
LATE = "late/"
"""Under it, an empty object for each pair of days such that rows received on the one stand in the other."""

_DAY = re.compile(r"/day=(\d{4}-\d{2}-\d{2})[/.]")
_PART = re.compile(r"part-(\d+)(?:-r(\d+)-([0-9a-f]+))?\.parquet")
_ACCOUNT = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def day_of(at: float) -> date:
    """The UTC day of epoch seconds `at`."""
    return datetime.fromtimestamp(at, UTC).date()


def midnight_ms(day: date) -> float:
    """Epoch milliseconds at which the UTC day begins."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000


def days(first: date, last: date) -> list[date]:
    """All days from `first` to `last`, both included."""
    return [first + timedelta(n) for n in range((last - first).days + 1)]


def in_day(prefix: str, day: date) -> str:
    """What a day has under a prefix that has a folder for each."""
    return f"{prefix}day={day:%Y-%m-%d}/"


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


def sealed_key(table: str, account: str, day: date, part: int, revision: str = "") -> str:
    """`revision` as `next_revision` gives it."""
    return f"{sealed_prefix(table, account, day)}part-{part}{revision}.parquet"


def rollup_prefix(rollup: str, account: str, day: date | None = None) -> str:
    return f"{ROLLUPS}{rollup}/account={checked_account(account)}/" + (f"day={day:%Y-%m-%d}/" if day else "")


def rollup_key(rollup: str, account: str, day: date, part: int, revision: str = "") -> str:
    return f"{rollup_prefix(rollup, account, day)}part-{part}{revision}.parquet"


def standing(keys: Iterable[str]) -> list[str]:
    """Those of these keys of sealed days or roll-ups that count, in their order: of each day the newest revision of
    which part 0 is there, for that is put last. Keys that are no parts count as they are."""
    known = list(keys)
    found = {key: _revision(key) for key in known}
    newest: dict[str, tuple[int, str]] = {}
    for key, revision in found.items():
        if revision and key.rpartition("/")[2].startswith(("part-0.", "part-0-")):
            folder = key.rpartition("/")[0]
            newest[folder] = max(newest.get(folder, revision), revision)
    return [key for key in known if found[key] is None or newest.get(key.rpartition("/")[0]) == found[key]]


def superseded(keys: Iterable[str]) -> list[str]:
    """Those of these keys of which a newer revision stands. One that is being written is not among them."""
    known = list(keys)
    stands: dict[str, tuple[int, str]] = defaultdict(lambda: (-1, ""))
    stands |= {key.rpartition("/")[0]: revision for key in standing(known) if (revision := _revision(key))}
    return [key for key in known if (mine := _revision(key)) and mine < stands[key.rpartition("/")[0]]]


def next_revision(keys: Iterable[str], digest: str) -> str:
    """What follows the newest revision in `keys`, as names of parts say it. `digest` (hex): what it is made of, so that
    two who make different ones at once do not mix their parts."""
    newest = max((revision[0] for key in keys if (revision := _revision(key))), default=0)
    return f"-r{newest + 1}-{digest}"


def _revision(key: str) -> tuple[int, str] | None:
    found = _PART.fullmatch(key.rpartition("/")[2])
    return (int(found[2] or 0), found[3] or "") if found else None


def unmade_key(rollup: str, account: str, day: date) -> str:
    """An empty object that says that the roll-up of this sealed day could not be made."""
    return f"{rollup_prefix(rollup, account, day)}unmade"


def gone_key(table: str, account: str, day: date) -> str:
    """An empty object that says that the account's rows of this sealed day went, for they were kept long enough."""
    return f"{sealed_prefix(table, account, day)}gone"


def is_gone(key: str) -> bool:
    """Whether `gone_key` made it."""
    return key.endswith("/gone")


def plan_key(day: date) -> str:
    """What `compact` decided before it wrote the first file of a sealed day."""
    return f"{SEALS}day={day:%Y-%m-%d}/plan.json"


def sealed_at_key(day: date) -> str:
    """When `compact` first saw the day sealed."""
    return f"{SEALS}day={day:%Y-%m-%d}/sealed-at.json"


def tidied_key(day: date) -> str:
    """That what is to be done once a day was done after this day was sealed."""
    return f"{SEALS}day={day:%Y-%m-%d}/tidied.json"


def unused_key(account: str, day: date) -> str:
    return f"{unused_prefix(account)}day={day:%Y-%m-%d}.json"


def unused_prefix(account: str) -> str:
    return f"{UNUSED}account={checked_account(account)}/"


def account_in(key: str) -> str | None:
    """The account that a key's path names, None if it names none."""
    found = re.search(r"/account=([^/]+)/", key)
    return found[1] if found else None


def code_key(account: str, code_hash: str, since: date | None = None) -> str:
    """`since`: of what comes again, the newest day on which some of the account's code was found unused."""
    return f"{CODE}account={checked_account(account)}/{code_hash}" + (f"-{since:%Y-%m-%d}" if since else "")


def hash_in(key: str) -> str:
    """The hash that `code_key` named."""
    return key.rpartition("/")[2].partition("-")[0]


def dead_prefix(account: str | None, cluster: str | None = None) -> str:
    """Of an account's dead letters, or of a cluster's; None for those whose sender cannot be read."""
    if account is None:
        return f"{DEAD}unread/"
    return f"{DEAD}account={checked_account(account)}/" + (f"cluster={cluster}/" if cluster else "")


def dead_key(account: str | None, cluster: str | None, letter: str, message: str) -> str:
    """A letter is named by what it holds, an object also by the message of the queue that brought it: one that was sent
    back and came again has another name than what is being taken away meanwhile.
    """
    return f"{dead_prefix(account, cluster)}{letter}/{message}.json"


def letter_in(key: str) -> str:
    """The letter that `dead_key` named."""
    return key.split("/")[-2]


def catalog_prefix(account: str) -> str:
    return f"{CATALOG}account={checked_account(account)}/"


def catalog_key(account: str, as_of: float, digest: str) -> str:
    """`as_of`: epoch seconds, of what the registry told; `digest` (hex): of the rows. Keys sort by time."""
    return f"{catalog_prefix(account)}{round(as_of * 1000):015d}-{digest}.parquet"


def catalog_as_of(key: str) -> float:
    """The epoch seconds that `catalog_key` named."""
    return int(key.rpartition("/")[2].partition("-")[0]) / 1000


def prices_prefix(account: str | None) -> str:
    """None: of the installation."""
    return f"{PRICES}all/" if account is None else f"{PRICES}account={checked_account(account)}/"


def prices_key(account: str | None, as_of: float, digest: str) -> str:
    """`as_of`: epoch seconds; `digest` (hex): of the file. Keys sort by time."""
    return f"{prices_prefix(account)}{round(as_of * 1000):015d}-{digest}.yaml"


def prices_as_of(key: str) -> float:
    """The epoch seconds that `prices_key` named."""
    return int(key.rpartition("/")[2].partition("-")[0]) / 1000


def day_in(key: str) -> date | None:
    """The day that a key's path names, None if it names none."""
    found = _DAY.search("/" + key)
    return date.fromisoformat(found[1]) if found else None


def is_account(account: str) -> bool:
    """Whether any account could have that name."""
    return _ACCOUNT.fullmatch(account) is not None


def checked_account(account: str) -> str:
    """`account` itself. Raises ValueError if it can be no account's name."""
    if not is_account(account):
        raise ValueError(f"{account!r} is no account name: 1 to 63 of a-z, 0-9 and '-'.")
    return account
