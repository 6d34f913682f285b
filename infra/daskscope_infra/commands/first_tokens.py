"""The tokens that a new stack starts with, made by `daskscope admin` as anybody would make more of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from daskscope_query.layout import checked_account


@dataclass(frozen=True, slots=True)
class FirstTokens:
    """`reporting` can only ingest: whoever can reach a scheduler can read the token that it has."""

    admin: str = field(repr=False)
    reporting: str = field(repr=False)


def check(tenant: str, outputs: Path | None) -> None:
    """Raises ClickException unless daskscope can have such an account, and a file be written there."""
    if outputs and not os.access(outputs.absolute().parent, os.W_OK):
        raise click.ClickException(f"--outputs: no file can be written in {outputs.absolute().parent}.")
    try:
        checked_account(tenant)
    except ValueError as error:
        raise click.ClickException(str(error)) from error


def make(stack: str, tenant: str) -> FirstTokens | None:
    """None if the account has had its first token. Raises ClickException."""
    scopes = ["--scope", "admin", "--scope", "ingest", "--scope", "read"]
    admin = _new(stack, tenant, "--first", "--name", "first, made by deploy", *scopes)
    if admin is None:
        return None
    reporting = _new(stack, tenant, "--name", "for schedulers, made by deploy", "--scope", "ingest")
    assert reporting is not None, "only --first may make none"
    return FirstTokens(admin, reporting)


def _new(stack: str, tenant: str, *options: str) -> str | None:
    command = ["token", "new", "--stack", stack, "--account", tenant, "--json", *options]
    # Its warnings and errors go where ours do.
    done = subprocess.run(  # noqa: S603 - our own program, no shell
        [sys.executable, "-m", "daskscope_lambdas.admin_command", *command],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise click.ClickException(
            f"The stack {stack} is deployed, but a token could not be made: above is why. Run `make deploy` again."
        )
    made = json.loads(done.stdout)
    return made and made["token"]


def tell(address: str, stack: str, tenant: str, tokens: FirstTokens | None) -> None:
    """What to do with them, on this terminal: nothing keeps the tokens."""
    another = f".venv/bin/daskscope admin token new --stack {stack} --account {tenant} --scope read --name NAME"
    if tokens is None:
        click.echo(f"Account {tenant} has had its first token. Another one, that reads:\n  {another}")
        return
    click.echo(f"""
The first token of account {tenant}, shown this once. It reads, reports and administers: keep it like a password.
  {tokens.admin}
The pages, logged in with it:
  {address}/login?token={tokens.admin}

Two lines for where clusters start. Their token can report and nothing else:
  export DASK_DASKSCOPE__SERVER={address}
  export DASK_DASKSCOPE__INGEST_TOKEN={tokens.reporting}

Who lists what happened (`daskscope clusters`) sets DASK_DASKSCOPE__TOKEN, too, to a token that reads:
  {another}""")


def write(path: Path, outputs: Mapping[str, str], tokens: FirstTokens | None) -> None:
    """The same for programs: JSON, for this user alone. `token` and `ingest_token` are null if none were made."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    told = {
        "address": outputs["Address"],
        "token": tokens and tokens.admin,
        "ingest_token": tokens and tokens.reporting,
        "outputs": dict(outputs),
    }
    with os.fdopen(descriptor, "w") as file:
        json.dump(told, file, indent=2)
