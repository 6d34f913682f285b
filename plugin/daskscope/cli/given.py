"""A token that somebody gives a command: written after it, or on standard input, where neither `ps` nor a shell's
history shows it."""

from __future__ import annotations

import sys

import click

from daskscope import parsing
from daskscope.errors import SettingsError


def token_of(text: str | None, name: str) -> str | None:
    """The token itself; of `-`, what standard input says. Raises UsageError, which does not show it."""
    if text == "-":
        text = click.prompt("Token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline().strip()
        if not text:
            raise click.UsageError(f"{name} -: there is no token on standard input.")
    try:
        return parsing.token("token", text)
    except SettingsError as error:
        raise click.UsageError(f"{name}: a token has no spaces or line breaks, and this has, or is empty.") from error
