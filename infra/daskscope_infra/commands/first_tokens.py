"""The tokens and the person that a new stack starts with, made by `daskscope admin` as anybody would make more."""

from __future__ import annotations

import getpass
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field

import click

from daskscope_query.layout import checked_account


@dataclass(frozen=True, slots=True)
class FirstTokens:
    """`reporting` can only ingest: whoever can reach a scheduler can read the token that it has. `reading` can only
    read. `link` signs `user`, the account's first admin, in to the pages: once, within a day."""

    reporting: str = field(repr=False)
    reading: str = field(repr=False)
    admin: str = field(repr=False)
    user: str
    link: str = field(repr=False)


def check(tenant: str) -> None:
    """Raises ClickException unless daskscope can have such an account."""
    try:
        checked_account(tenant)
    except ValueError as error:
        raise click.ClickException(str(error)) from error


def os_user() -> str:
    """Who runs this, as a name of people here; `admin` where that is nobody's name."""
    try:
        told = getpass.getuser()
    except (OSError, KeyError):  # A container's user that nobody named; KeyError before Python 3.13.
        return "admin"
    return re.sub(r"[^A-Za-z0-9._@+-]+", "-", told).lstrip("._@+-")[:64] or "admin"


def make(stack: str, tenant: str, user: str) -> FirstTokens | None:
    """None if the account has had its first tokens; else `user` is its first admin, too. Raises ClickException."""
    # The administrator's comes last, for by that one an account has had them: what is broken off before is made anew.
    reporting = _token(stack, tenant, "for schedulers, made by deploy", ("ingest",))
    reading = reporting and _token(stack, tenant, "for lists, made by deploy", ("read",))
    if not (reporting and reading):
        return None
    _admin("user", "role", user, "admin", stack=stack, tenant=tenant)
    link = json.loads(_admin("user", "link", user, "--json", stack=stack, tenant=tenant))["url"]
    admin = _token(stack, tenant, "first, made by deploy", ("admin", "control", "ingest", "read", "report"))
    return FirstTokens(reporting, reading, admin, user, link) if admin else None


def _token(stack: str, tenant: str, name: str, scopes: tuple[str, ...]) -> str | None:
    """None if the account has ever had a token of scope admin."""
    wanted = [word for scope in scopes for word in ("--scope", scope)]
    made = json.loads(_admin("token", "new", "--first", "--json", "--name", name, *wanted, stack=stack, tenant=tenant))
    return made and made["token"]


def _admin(*command: str, stack: str, tenant: str) -> str:
    """What `daskscope admin` prints; its warnings and errors go where ours do."""
    done = subprocess.run(  # noqa: S603 - our own program, no shell
        [sys.executable, "-m", "daskscope_lambdas.admin_command", *command, "--stack", stack, "--account", tenant],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        what = "a token" if command[0] == "token" else "a link for the first admin"
        raise click.ClickException(
            f"The stack {stack} is deployed, but {what} could not be made: above is why. Run `make deploy` again."
        )
    return done.stdout


def tell(address: str, stack: str, tenant: str, tokens: FirstTokens | None) -> None:
    """What to do with them, on this terminal: nothing keeps the tokens."""
    admin = f".venv/bin/daskscope admin {{}} --stack {stack} --account {tenant}"
    another = f"{admin.format('token new')} --name NAME --scope"
    if tokens is None:
        click.echo(f"""
Account {tenant} has had its first tokens. The line for where clusters start:
  export DASK_DASKSCOPE__SERVER={address}
More tokens, one that can report and one that can read:
  {another} ingest
  {another} read
A link by which one of its people signs in:
  {admin.format("user link USER")}""")
        return
    click.echo(f"""
The pages, for {tokens.user}, who looks after account {tenant}. This link signs in once, within a day:
  {tokens.link}
There {tokens.user} invites others, as `daskscope user invite` does. A new link:
  {admin.format(f"user link {tokens.user}")}

Three tokens of account {tenant}, shown this once.

Two lines for where clusters start. This token can report and nothing else:
  export DASK_DASKSCOPE__SERVER={address}
  export DASK_DASKSCOPE__INGEST_TOKEN={tokens.reporting}

One more line for who lists what happened (`daskscope clusters`). This token can read and nothing else:
  export DASK_DASKSCOPE__TOKEN={tokens.reading}
Who has signed in needs none of these: `daskscope login --server {address}`

The first token may do everything. Keep it like a password, and out of links and clusters:
  {tokens.admin}

More tokens that read:
  {another} read""")
