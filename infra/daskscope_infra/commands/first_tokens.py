"""The tokens that a new stack starts with, made by `daskscope admin` as anybody would make more of them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field

import click

from daskscope_query.layout import checked_account


@dataclass(frozen=True, slots=True)
class FirstTokens:
    """`reporting` can only ingest: whoever can reach a scheduler can read the token that it has.

    `reading` can only read: it stands in links, which browsers keep.
    """

    reporting: str = field(repr=False)
    reading: str = field(repr=False)
    admin: str = field(repr=False)


def check(tenant: str) -> None:
    """Raises ClickException unless daskscope can have such an account."""
    try:
        checked_account(tenant)
    except ValueError as error:
        raise click.ClickException(str(error)) from error


def make(stack: str, tenant: str) -> FirstTokens | None:
    """None if the account has had its first tokens. Raises ClickException."""
    # The administrator's comes last, for by that one an account has had them: what is broken off before is made anew.
    made: list[str] = []
    for name, scopes in (
        ("for schedulers, made by deploy", ("ingest",)),
        ("for pages and lists, made by deploy", ("read",)),
        ("first, made by deploy", ("admin", "control", "ingest", "read")),
    ):
        token = _new(stack, tenant, name, scopes)
        if token is None:
            return None
        made.append(token)
    return FirstTokens(*made)


def _new(stack: str, tenant: str, name: str, scopes: tuple[str, ...]) -> str | None:
    """None if the account has ever had a token of scope admin."""
    wanted = [word for scope in scopes for word in ("--scope", scope)]
    command = ["token", "new", "--first", "--json", "--stack", stack, "--account", tenant, "--name", name, *wanted]
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
    another = f".venv/bin/daskscope admin token new --stack {stack} --account {tenant} --name NAME --scope"
    if tokens is None:
        click.echo(f"""
Account {tenant} has had its first tokens. The line for where clusters start:
  export DASK_DASKSCOPE__SERVER={address}
More tokens, one that can report and one that can read:
  {another} ingest
  {another} read""")
        return
    click.echo(f"""
Three tokens of account {tenant}, shown this once.

Two lines for where clusters start. This token can report and nothing else:
  export DASK_DASKSCOPE__SERVER={address}
  export DASK_DASKSCOPE__INGEST_TOKEN={tokens.reporting}

One more line for who lists what happened (`daskscope clusters`). This token can read and nothing else:
  export DASK_DASKSCOPE__TOKEN={tokens.reading}
The pages, logged in with it:
  {address}/login?token={tokens.reading}

The first token may do everything. Keep it like a password, and out of links and clusters:
  {tokens.admin}

More tokens that read:
  {another} read""")
