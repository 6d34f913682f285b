"""The prices that an installation or an account set in place of the packaged ones, kept in the lake's store.

Objects are written once, so each setting is an object of its own; the newest counts, and whoever sets one takes those
before it away. A setting that cannot be read any more is left out, and the log says so: nobody's lists stop for it.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from daskscope.errors import SettingsError
from daskscope_lambdas.ports import Clock, Missing, ObjectStore, Taken
from daskscope_lambdas.service.price_file import merged, packaged, read_override
from daskscope_lambdas.service.prices import Prices
from daskscope_query import layout

logger = logging.getLogger("daskscope.prices")

CACHE_S = 60.0
"""How long a process goes on with prices that were set anew meanwhile."""


@dataclass(frozen=True, slots=True)
class _Kept:
    prices: Prices
    until: float


class PriceReader:
    """What is in force. Safe to use from many threads."""

    def __init__(self, objects: ObjectStore, clock: Clock) -> None:
        self._objects, self._clock = objects, clock
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    def of(self, account: str) -> Prices:
        """The account's own over the installation's over the packaged ones."""
        now = self._clock.now()
        with self._lock:
            kept = self._kept.get(account)
        if kept is not None and now < kept.until:
            return kept.prices
        prices = in_force(self._objects, account)
        with self._lock:
            self._kept[account] = _Kept(prices, now + CACHE_S)
        return prices


class PriceKeeper:
    """What somebody sets; `account` None is the installation: every account that says nothing itself."""

    def __init__(self, objects: ObjectStore, clock: Clock) -> None:
        self._objects, self._clock = objects, clock

    def set(self, account: str | None, text: bytes, name: str, note: Callable[[], object] | None = None) -> None:
        """In place of what was set before. `note` is called before anything is done. Raises SettingsError for a file
        that is no file of prices."""
        override = read_override(text, whose(account), name)
        merged(packaged() if account is None else in_force(self._objects, None), override)
        if note:
            note()
        before = list(self._objects.list(layout.prices_prefix(account)))
        # Two in one moment, or a clock that was set back: the later one must still be the newest.
        latest = max((layout.prices_as_of(key) for key in before), default=0.0)
        as_of = max(self._clock.now(), latest + 0.001)
        with suppress(Taken):
            self._objects.put_new(layout.prices_key(account, as_of, hashlib.sha256(text).hexdigest()[:16]), text)
        for key in before:
            self._objects.delete(key)

    def clear(self, account: str | None) -> bool:
        """As if nothing ever was set; False if nothing was."""
        keys = list(self._objects.list(layout.prices_prefix(account)))
        for key in keys:
            self._objects.delete(key)
        return bool(keys)


def whose(account: str | None) -> str:
    return "this installation" if account is None else f"account {account}"


def in_force(objects: ObjectStore, account: str | None) -> Prices:
    """Those of the account, None: of whatever account says nothing itself."""
    prices = packaged()
    for owner in (None,) if account is None else (None, account):
        prices = _over(prices, objects, owner)
    return prices


def _over(base: Prices, objects: ObjectStore, account: str | None) -> Prices:
    """`base` with what was set last in its place."""
    for key in sorted(objects.list(layout.prices_prefix(account)), reverse=True):
        # Gone between the two: somebody set others, or none.
        with suppress(Missing):
            text = objects.get(key)
            try:
                return merged(base, read_override(text, whose(account), key))
            except SettingsError as error:
                logger.warning("Prices of %s are left out: %s", whose(account), error)
                return base
    return base
