"""Which lake, account and keys somebody means who reads one without a server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from daskscope.errors import DaskscopeError, NotFound, PermissionDenied, ServerUnreachable, SettingsError
from daskscope_lambdas import env
from daskscope_lambdas.adapters.direct import SSM, Place, key_in
from daskscope_lambdas.ports import Missing, StoreError
from daskscope_query import layout

_PARTS = {top.rstrip("/") for top in (layout.OPEN, layout.SEALED, layout.ROLLUPS, layout.SEALS, layout.CATALOG)}
_DENIED = ("ACCESS_DENIED", "Access Denied", "HTTP status 403", "Permission denied", "PermissionError")
"""In what pyarrow says of a store that knows who asks, and lets them not."""


def settings_of(
    root: str, account: str | None, keys: str | None, environ: Mapping[str, str] = os.environ
) -> env.DirectEnv:
    """See direct.open_lake. Raises DaskscopeError."""
    region = environ.get(env.AWS_REGION) or environ.get("AWS_DEFAULT_REGION", "")
    try:
        given = Place.at(root, env.s3_options(region, environ.get(env.AWS_ENDPOINT_URL, "")))
        lake = given.lake()
        account = _account(lake, account)
    except ValueError as error:
        if isinstance(error, DaskscopeError):
            raise
        allowed = f"a folder, s3://BUCKET/PREFIX, or another URI that pyarrow opens ({error})"
        raise SettingsError("server", root, allowed) from error
    except StoreError as error:
        raise explained(error) from error
    return env.DirectEnv(lake=lake.root, account=account, keys=_keys(lake, account, keys))


def _account(lake: Place, account: str | None) -> str:
    """`account`, or the only one. Raises StoreError, DaskscopeError that names those that are there."""
    accounts = lake.accounts()
    if not accounts:
        is_lake = bool(_PARTS & set(lake.folders("")))
        if is_lake and account is not None:
            return account  # Whose rows the open files are, each says: what was told is there without a catalog.
        what = "no catalog of clusters, which names the account," if is_lake else "nothing of a lake"
        raise NotFound(
            f"There is {what} in {lake.named()}. A server writes one within a minute of the first message (in AWS, "
            "within a quarter of an hour): is this where its lake is, and does it run?"
        )
    if account is None and len(accounts) > 1:
        raise SettingsError("account", None, f"one of those in {lake.named()}: {', '.join(accounts)}")
    if account not in (None, *accounts):
        raise NotFound(f"There is no account {account} in {lake.named()}; there are {', '.join(accounts)}.")
    return account or accounts[0]


def _keys(lake: Place, account: str, keys: str | None) -> str | None:
    """`keys`, or those beside a lake on disk. Raises SettingsError for a folder without the account's key."""
    if keys is None:
        beside = Path(lake.root).parent / "keys"
        return str(beside) if "://" not in lake.root and beside.is_dir() else None
    if not keys.startswith(SSM):
        try:
            key_in(Path(keys).expanduser(), account)
        except StoreError as error:
            allowed = f"a folder that holds {account}.key, or ssm:/PATH of AWS's Parameter Store ({error})"
            raise SettingsError("keys", keys, allowed) from error
    return keys


def explained(error: StoreError) -> DaskscopeError:
    """What to raise where a store does not answer as a lake does."""
    if isinstance(error, Missing):
        return NotFound(str(error))
    if any(words in str(error) for words in _DENIED):
        return PermissionDenied(
            f"{error} In AWS, whoever reads a lake needs s3:ListBucket and s3:GetObject; credentials come from where "
            "AWS's tools look (AWS_PROFILE, AWS_ACCESS_KEY_ID and its kin, the machine's role)."
        )
    return ServerUnreachable(f"The lake could not be read: {error}")
