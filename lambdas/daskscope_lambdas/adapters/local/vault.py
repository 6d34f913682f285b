"""Vault on a folder: one key file per account."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from daskscope_lambdas.adapters import sealing
from daskscope_lambdas.adapters.local.disk import DiskObjects
from daskscope_lambdas.ports import Missing, Taken


class DiskVault:
    """Key files (mode 0600, 32 random bytes) in `folder` (mode 0700).

    Each call reads the key anew, so that a forgotten one is gone at once.
    """

    def __init__(self, folder: Path) -> None:
        self._keys = DiskObjects(folder)

    def seal(self, account: str, plain: Mapping[str, bytes]) -> dict[str, bytes]:
        try:
            key = self._keys.get(_file(account))
        except Missing:
            key = self._new_key(account)
        return sealing.seal(key, account, plain)

    def open(self, account: str, sealed: Mapping[str, bytes]) -> dict[str, bytes]:
        return sealing.unseal(self._keys.get(_file(account)), account, sealed)

    def forget(self, account: str) -> None:
        self._keys.delete(_file(account))

    def _new_key(self, account: str) -> bytes:
        with suppress(Taken):  # Then another process was faster, and its key is the account's.
            self._keys.put_new(_file(account), sealing.new_key())
        return self._keys.get(_file(account))


def _file(account: str) -> str:
    return f"{account}.key"
