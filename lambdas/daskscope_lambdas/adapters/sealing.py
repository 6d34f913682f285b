"""How vaults of every world seal: AES-256-GCM, bound to account and context.

cryptography is imported when first needed: few messages bring code, and it would be a tenth of a function's start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from daskscope_lambdas.ports import StoreError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32

_FORM = b"\x01"
"""First byte of all that is sealed: AES-256-GCM, a nonce of 12 bytes, ciphertext, tag."""
_NONCE_BYTES = 12


def new_key() -> bytes:
    return os.urandom(KEY_BYTES)


def seal(key: bytes, account: str, plain: Mapping[str, bytes]) -> dict[str, bytes]:
    """By context; different on each call. Raises StoreError if `key` is damaged."""
    cipher, sealed = _cipher(key, account), dict[str, bytes]()
    for context, text in plain.items():
        nonce = os.urandom(_NONCE_BYTES)
        sealed[context] = _FORM + nonce + cipher.encrypt(nonce, text, _bound_to(account, context))
    return sealed


def unseal(key: bytes, account: str, sealed: Mapping[str, bytes]) -> dict[str, bytes]:
    """By context. Raises StoreError if `key` is damaged, or not the one that sealed these for account and context."""
    cipher = _cipher(key, account)
    return {context: _unseal(cipher, account, each, context) for context, each in sealed.items()}


def _unseal(cipher: AESGCM, account: str, sealed: bytes, context: str) -> bytes:
    from cryptography.exceptions import InvalidTag

    form, nonce, rest = sealed[:1], sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
    if form != _FORM:
        raise StoreError(f"What account {account} wants opened was not sealed by this version of daskscope.")
    try:
        return cipher.decrypt(nonce, rest, _bound_to(account, context))
    except (InvalidTag, ValueError) as error:
        text = f"Account {account}'s key does not open this: other key or context, or the bytes were changed."
        raise StoreError(text) from error


def _cipher(key: bytes, account: str) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(key) != KEY_BYTES:
        raise StoreError(f"The key of account {account} is damaged: restore it from a backup.")
    return AESGCM(key)


def _bound_to(account: str, context: str) -> bytes:
    return json.dumps([account, context]).encode()
