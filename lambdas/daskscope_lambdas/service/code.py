"""Code snippets: kept once per account and hash, encrypted under the account's key, and nowhere else."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from daskscope import wire
from daskscope.errors import BadMessage
from daskscope_lambdas.ports import Missing, ObjectStore, Taken, Vault
from daskscope_lambdas.service.leaving import leaving
from daskscope_query import layout

_HASH = re.compile(r"[0-9a-f]{32}")
_REMEMBERED = 10_000
REMEMBERED_S = 3600.0
"""Code that nothing names goes (unused.py). What comes again after that is to be kept again."""
_AT_ONCE = 16
"""Calls of the store: one after another, 1,000 snippets would outlast the function."""


class CodeKeeper:
    """Keeps and reads code. Remembers what it kept, so that a repeat costs no I/O; safe to use from many threads."""

    def __init__(self, objects: ObjectStore, vault: Vault, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._objects, self._vault, self._monotonic = objects, vault, monotonic
        self._known: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_AT_ONCE, "daskscope-code")  # starts no thread before it has work

    def keep(self, account: str, codes: Sequence[wire.Code]) -> None:
        """Returns once all of them are durable. Raises BadMessage, and keeps none, if a hash is not its text's."""
        check_hashes(codes)
        new = {code.hash: _bytes(code.text) for code in codes if not self._knows(account, code.hash)}
        keys = self._keys(account, new) if new else {}
        sealed = self._vault.seal(account, new) if new else {}
        puts = self._pool.map(self._put, [keys[code_hash] for code_hash in sealed], sealed.values())
        for code_hash, _ in zip(sealed, puts, strict=True):
            self._remember(account, code_hash)

    def read(self, account: str, hashes: Iterable[str]) -> dict[str, str]:
        """Text by hash. What was never kept, or whose key was forgotten, is not in it."""
        asked = [code_hash for code_hash in dict.fromkeys(hashes) if _HASH.fullmatch(code_hash)]
        found = zip(asked, self._pool.map(partial(self._get, account), asked), strict=True)
        sealed = {code_hash: body for code_hash, body in found if body is not None}
        try:
            texts = self._vault.open(account, sealed) if sealed else {}
        except Missing:
            return {}
        return {code_hash: text.decode() for code_hash, text in texts.items()}

    def forget(self, account: str) -> None:
        """Make all code of an account unreadable for good, then delete it. Once more mends a forget that was cut short.

        Another process that kept a snippet before will not keep it again until REMEMBERED_S have passed.
        """
        self._vault.forget(account)
        for key in self._objects.list(layout.code_key(account, "")):
            self._objects.delete(key)  # Else a new key would meet what only the old one opened.
        with self._lock:
            for known in [each for each in self._known if each[0] == account]:
                del self._known[known]

    def _keys(self, account: str, hashes: Iterable[str]) -> dict[str, str]:
        """Under which key each is to be kept: of what is about to go, under one that no mark can name by now. Asked for
        before anything is put: what nobody marked yet will stay for long enough.
        """
        marks = leaving(self._objects, account)
        marked = {layout.hash_in(key) for keys in marks.values() for key in keys}
        newest = max(marks, default=None)
        return {each: layout.code_key(account, each, newest if each in marked else None) for each in hashes}

    def _put(self, key: str, sealed: bytes) -> None:
        with suppress(Taken):
            self._objects.put_new(key, sealed)

    def _get(self, account: str, code_hash: str) -> bytes | None:
        key = layout.code_key(account, code_hash)
        with suppress(Missing):
            return self._objects.get(key)
        for other in self._objects.list(f"{key}-"):
            with suppress(Missing):
                return self._objects.get(other)
        return None

    def _knows(self, account: str, code_hash: str) -> bool:
        with self._lock:
            kept_at = self._known.get((account, code_hash))
            if kept_at is None or self._monotonic() - kept_at >= REMEMBERED_S:
                return False
            self._known.move_to_end((account, code_hash))
            return True

    def _remember(self, account: str, code_hash: str) -> None:
        with self._lock:
            self._known[account, code_hash] = self._monotonic()
            self._known.move_to_end((account, code_hash))
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)


def check_hashes(codes: Sequence[wire.Code]) -> None:
    """Raises BadMessage if a hash is not its text's."""
    for index, code in enumerate(codes):
        if _hash(code.text) != code.hash:
            raise BadMessage(
                f"The hash {code.hash!r} is not the SHA-256 (first 32 hex digits) of its text.",
                f"$.codes[{index}].hash",
            )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # As the plugin does before it hashes: a lone surrogate has no UTF-8.


def _hash(text: str) -> str:
    return hashlib.sha256(_bytes(text)).hexdigest()[:32]
