"""Vault with keys that somebody has beside the lake: it opens, and seals nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from daskscope_lambdas.adapters import sealing
from daskscope_lambdas.adapters.direct.mapping import refuse
from daskscope_lambdas.adapters.local.mapping import mapped
from daskscope_lambdas.ports import Missing, StoreError, Vault

logger = logging.getLogger("daskscope.direct")

SSM = "ssm:"
"""What `keys` begins with where they are in AWS's Parameter Store."""

Open = Callable[[str, Mapping[str, bytes]], dict[str, bytes]]


class ReadingVault:
    """What cannot be opened is as good as not kept: no text, and a word in the log, once. No key at all is no fault."""

    seal = forget = staticmethod(refuse)

    def __init__(self, unseal: Open) -> None:
        self._unseal, self._told = unseal, False

    def open(self, account: str, sealed: Mapping[str, bytes]) -> dict[str, bytes]:
        try:
            return self._unseal(account, sealed)
        except StoreError as error:
            if not self._told:
                level = logging.INFO if isinstance(error, Missing) else logging.WARNING
                logger.log(level, "Code is not shown: %s", error)
                self._told = True
            raise Missing(str(error)) from error


def vault(keys: str | None) -> Vault:
    """`keys`: a folder of them, as a server's data folder has it; `ssm:/path`; None for none.

    Raises ImportError that says what to install.
    """
    if keys is None:
        return ReadingVault(_without)
    if keys.startswith(SSM):
        return ReadingVault(_in_ssm(keys.removeprefix(SSM)))
    folder = Path(keys).expanduser()

    def unseal(account: str, sealed: Mapping[str, bytes]) -> dict[str, bytes]:
        return sealing.unseal(key_in(folder, account), account, sealed)

    return ReadingVault(unseal)


def key_in(folder: Path, account: str) -> bytes:
    """Raises Missing, StoreError."""
    path = folder / f"{account}.key"
    with mapped(path):
        return path.read_bytes()


def _without(account: str, _sealed: Mapping[str, bytes]) -> dict[str, bytes]:
    raise Missing(f"there is no key to the code of account {account}; name it by keys=, as a folder or ssm:/path.")


def _in_ssm(path: str) -> Open:
    try:
        from daskscope_lambdas.adapters import aws
    except ImportError as error:
        raise ImportError("Keys in the Parameter Store need boto3: pip install boto3") from error
    return aws.SsmVault(aws.Clients().ssm, path.rstrip("/")).open
