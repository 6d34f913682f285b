"""From when to when, and of whom: options of the commands that look back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from daskscope.arguments import WEEK, moment
from daskscope.errors import SettingsError

MONTH, ALL = "30 days", "all"
OF_ONE = f"{WEEK}; {ALL} with CLUSTER"


def since(default: str = ALL) -> Callable[[Any], Any]:
    """--since, which tells the default that the command makes so."""
    text = f"From when on: how far back, like '36h', or a time in ISO 8601; '{ALL}' for all history."
    return click.option("--since", metavar="WHEN", callback=_checked, help=f"{text}  [default: {default}]")


def _checked(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:  # noqa: ARG001 - click's signature
    """The text itself. Raises BadParameter in the words of a command line."""
    is_since = parameter.name == "since"
    try:
        if text is not None and not (is_since and text == ALL):
            moment(text, "WHEN")
    except SettingsError:
        forever = f", or '{ALL}' for all history" if is_since else ""
        raise click.BadParameter(
            f"{text!r}; allowed: how far back, like '36h' or '7 days', a time in ISO 8601, like 2026-11-21T08:00Z"
            f"{forever}."
        ) from None
    return text


until = click.option(
    "--until", metavar="WHEN", callback=_checked, help="Up to when: how far back, or a time in ISO 8601."
)
user = click.option("--user", help="Only of this user.")


def back(text: str | None, default: str) -> str | None:
    """What a function is told for --since: None is all history."""
    wanted = text or default
    return None if wanted == ALL else wanted


def of_one(text: str | None, cluster: str | None, default: str = WEEK) -> str | None:
    """The same for a list that is of one cluster, of which the whole life counts, or of all."""
    return back(text, default if cluster is None else ALL)
