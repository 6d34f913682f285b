"""Vault on the SSM Parameter Store: a SecureString per account."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypedDict

from daskscope_lambdas.adapters import sealing
from daskscope_lambdas.adapters.aws.again import tries
from daskscope_lambdas.adapters.aws.mapping import mapped
from daskscope_lambdas.adapters.keys import check_key
from daskscope_lambdas.ports import Missing, StoreError, Taken

if TYPE_CHECKING:
    from types_boto3_ssm.client import SSMClient


class _Kms(TypedDict, total=False):
    KeyId: str


class SsmVault:
    """32 random bytes per account, in base64, under `<folder>/<account>`; encrypted by `kms_key`, empty for AWS's own.

    Each call reads the key anew, so that a forgotten one is gone. For a moment the store may answer from before a
    change: a key that was just made is looked for a few times, one that was just forgotten may open once more.
    """

    def __init__(self, client: Callable[[], SSMClient], folder: str, kms_key: str = "") -> None:
        self._client, self._folder = client, folder
        self._kms: _Kms = {"KeyId": kms_key} if kms_key else {}

    def seal(self, account: str, plain: Mapping[str, bytes]) -> dict[str, bytes]:
        try:
            key = self._key(account)
        except Missing:
            key = self._new_key(account)
        return sealing.seal(key, account, plain)

    def open(self, account: str, sealed: Mapping[str, bytes]) -> dict[str, bytes]:
        return sealing.unseal(self._key_in_time(account), account, sealed)

    def forget(self, account: str) -> None:
        name = self._name(account)
        with suppress(Missing), mapped(name):
            self._client().delete_parameter(Name=name)

    def _key(self, account: str) -> bytes:
        name = self._name(account)
        with mapped(name):
            told = self._client().get_parameter(Name=name, WithDecryption=True)["Parameter"]
        try:
            return base64.b64decode(told.get("Value", ""), validate=True)
        except binascii.Error as error:
            raise StoreError(f"The key of account {account} is damaged: restore it from a backup.") from error

    def _key_in_time(self, account: str) -> bytes:
        """Raises Missing if it is still not to be seen after a few tries."""
        missing = Missing()
        for _ in tries():
            try:
                return self._key(account)
            except Missing as error:
                missing = error
        raise missing

    def _new_key(self, account: str) -> bytes:
        name, key = self._name(account), sealing.new_key()
        try:
            with mapped(name):
                self._client().put_parameter(
                    Name=name, Value=base64.b64encode(key).decode(), Type="SecureString", Overwrite=False, **self._kms
                )
        except Taken:  # Another process was faster, and its key is the account's.
            return self._key_in_time(account)
        return key

    def _name(self, account: str) -> str:
        check_key(account)
        return f"{self._folder}/{account}"
