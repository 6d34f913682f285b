"""Which server a command of `daskscope admin` means, and its stores opened."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from daskscope.cli import Failure
from daskscope.errors import DaskscopeError, ServerError, SettingsError
from daskscope_lambdas import env
from daskscope_lambdas.ports import StoreError

if TYPE_CHECKING:
    from daskscope_lambdas.wiring import Adapters

ACCOUNTS = {"local": "local", "aws": "main"}
"""World to the account that is meant if none is named."""


def on_registry(command: Callable[..., None]) -> Callable[..., None]:
    """Opens the registry that the options name for `command(world, account, ...)`; tells its errors in a sentence."""

    @click.option("--account", help="Which account.  [default: main in AWS, else local]")
    @functools.wraps(command)
    def run(world: Adapters, of: env.Env, account: str | None, **options: Any) -> None:
        from daskscope_query.layout import checked_account

        try:
            account = checked_account(account or ACCOUNTS[of.world])
        except ValueError as error:
            raise SettingsError("--account", account, "1 to 63 of a-z, 0-9 and '-'") from error
        command(world, account, **options)

    return _on_server(run, "The registry")


def on_stores(command: Callable[..., None]) -> Callable[..., None]:
    """Opens the stores of the server that the options name for `command(world, ...)`, which is about all accounts."""

    @functools.wraps(command)
    def run(world: Adapters, of: env.Env, **options: Any) -> None:  # noqa: ARG001 - the same in every world
        command(world, **options)

    return _on_server(run, "What the server keeps")


def _on_server(command: Callable[..., None], what: str) -> Callable[..., None]:
    """Options that name a server; `command(world, env, ...)` gets it opened. `what` begins the sentence of an error."""

    @click.option("--data", type=click.Path(file_okay=False), help="Data folder of a `daskscope serve`.")
    @click.option("--stack", metavar="NAME", help="Stack in AWS, found with your credentials and region.")
    @functools.wraps(command)
    def run(data: str | None, stack: str | None, **options: Any) -> None:
        from daskscope_lambdas.wiring import connect

        try:
            named = _named(data, stack)
            world = connect(named)
            try:
                command(world, named, **options)
            finally:
                world.close()
        except StoreError as error:
            raise Failure(ServerError(f"{what} could not be used: {error}")) from error
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
