"""Which server a command of `daskscope admin` means, and its registry opened."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from daskscope.cli import Failure
from daskscope.errors import DaskscopeError, ServerError, SettingsError
from daskscope_lambdas import env
from daskscope_lambdas.ports import StoreError

ACCOUNTS = {"local": "local", "aws": "main"}
"""World to the account that is meant if none is named."""


def on_registry(command: Callable[..., None]) -> Callable[..., None]:
    """Opens the registry that the options name for `command(world, account, ...)`; tells its errors in a sentence."""

    @click.option("--data", type=click.Path(file_okay=False), help="Data folder of a `daskscope serve`.")
    @click.option("--stack", metavar="NAME", help="Stack in AWS, found with your credentials and region.")
    @click.option("--account", help="Whose tokens.  [default: main in AWS, else local]")
    @functools.wraps(command)
    def run(data: str | None, stack: str | None, account: str | None, **options: Any) -> None:
        from daskscope_lambdas.wiring import connect
        from daskscope_query.layout import checked_account

        try:
            where = _named(data, stack)
            try:
                account = checked_account(account or ACCOUNTS[where.world])
            except ValueError as error:
                raise SettingsError("--account", account, "1 to 63 of a-z, 0-9 and '-'") from error
            world = connect(where)
            try:
                command(world, account, **options)
            finally:
                world.close()
        except StoreError as error:
            raise Failure(ServerError(f"The registry could not be used: {error}")) from error
        except DaskscopeError as error:
            raise Failure(error) from error

    return run


def _named(data: str | None, stack: str | None) -> env.Env:
    """The environment of the server that is meant."""
    if data and stack:
        raise click.UsageError("--data and --stack name two servers: say one.")
    if stack:
        from daskscope_lambdas.deployed import environment

        return environment(stack)
    try:
        where = env.LocalEnv(data=data) if data else env.read()
    except KeyError as error:
        said = f"{error.args[0]} is not set. Say --data FOLDER or --stack NAME, or set what the functions have."
        raise click.UsageError(said) from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    # A folder that is misspelt would be made, and with it a server that nobody runs.
    if isinstance(where, env.LocalEnv) and not (Path(where.data) / "registry.sqlite").is_file():
        raise SettingsError("--data", where.data, "a folder in which `daskscope serve` has run")
    return where
