"""Vault on a folder: one key file per account."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from daskscope_lambdas.adapters.local.disk import DiskObjects
from daskscope_lambdas.ports import Missing, StoreError, Taken

_FORM = b"\x01"
"""First byte of all that is sealed: AES-256-GCM, a nonce of 12 bytes, ciphertext, tag."""
_NONCE_BYTES = 12


class DiskVault:
    """Key files (mode 0600, 32 random bytes) in `folder` (mode 0700).

    Each call reads the key anew, so that a forgotten one is gone at once.
    """

    def __init__(self, folder: Path) -> None:
        self._keys = DiskObjects(folder)

    def seal(self, account: str, plain: bytes, context: str) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        try:
            cipher = self._cipher(account)
        except Missing:
            cipher = self._new_cipher(account)
        return _FORM + nonce + cipher.encrypt(nonce, plain, _bound_to(account, context))

    def open(self, account: str, sealed: bytes, context: str) -> bytes:
        cipher = self._cipher(account)
        form, nonce, rest = sealed[:1], sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        if form != _FORM:
            raise StoreError(f"What account {account} wants opened was not sealed by this version of daskscope.")
        try:
            return cipher.decrypt(nonce, rest, _bound_to(account, context))
        except (InvalidTag, ValueError) as error:
            text = f"Account {account}'s key does not open this: other key or context, or the bytes were changed."
            raise StoreError(text) from error

    def forget(self, account: str) -> None:
        self._keys.delete(_file(account))

    def _cipher(self, account: str) -> AESGCM:
        key = self._keys.get(_file(account))
        try:
            return AESGCM(key)
        except ValueError as error:
            raise StoreError(f"The key file of account {account} is damaged: restore it from a backup.") from error

    def _new_cipher(self, account: str) -> AESGCM:
        with suppress(Taken):  # Then another process was faster, and its key is the account's.
            self._keys.put_new(_file(account), AESGCM.generate_key(256))
        return self._cipher(account)


def _file(account: str) -> str:
    return f"{account}.key"


def _bound_to(account: str, context: str) -> bytes:
    return json.dumps([account, context]).encode()
