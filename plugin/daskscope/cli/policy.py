"""`daskscope policy`: what an account wants of reports, of idle clusters, and of how long rows are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from daskscope.arguments import Subject, seconds
from daskscope.cli.asking import asking
from daskscope.cli.formats import TABLE, document
from daskscope.cli.listing import formatted
from daskscope.records import Record

if TYPE_CHECKING:
    from daskscope.session import Session

NEVER = "never"
_SPAN = "a time span like '2h' or '30 minutes', or `never`"


@click.group()
def policy() -> None:
    """Show what the account wants of reports, idle clusters and old rows, or change it (as an admin)."""


@policy.command("show")
@formatted(TABLE, "json")
@asking
def show_(session: Session, form: str) -> None:
    """Show what is in force."""
    found = session.policy()
    if form == "json":
        document(found)
    else:
        click.echo(_text(found))


@policy.command()
@click.option("--public", type=click.Choice(["allow", "deny"]), help="Whether a report may be open by its link.")
@click.option("--keep-days", metavar="N|never", help="After so many days they go; `never` keeps them.")
@asking
def reports(session: Session, public: str | None, keep_days: str | None) -> None:
    """Change what is wanted of performance reports."""
    changes: dict[str, Any] = {} if public is None else {"public": public}
    if keep_days is not None:
        changes["keep_days"] = None if keep_days == NEVER else _days(keep_days)
    _change(session, "reports", lambda wish: {**wish, **changes}, bool(changes))


@policy.command()
@click.argument("span", metavar="[SPAN]", required=False)
@click.option(
    "--user", "users", metavar="NAME=SPAN", multiple=True, help="For clusters of this one; `=` alone: as all."
)
@click.option("--cluster", "clusters", metavar="N=SPAN", multiple=True, help="For this one; `=` alone: as its user's.")
@asking
def idle(session: Session, span: str | None, users: tuple[str, ...], clusters: tuple[str, ...]) -> None:
    """Have clusters that idle for SPAN closed: those whose own settings say nothing, and who let others close them.

    SPAN is a time span like '2h', or `never`. What is said of a cluster wins over what is said of its user, and that
    over the account's. `--user ann=` takes back what was said of ann.
    """
    named = {"users": _named(users), "clusters": _named(clusters)}

    def changed(wish: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {**wish} if span is None else {**wish, "timeout_s": _span(span)}
        for name, pairs in named.items():
            before: dict[str, Any] = found.get(name) or {}
            known = before | {key: _span(value) for key, value in pairs.items() if value}
            found[name] = {key: value for key, value in known.items() if pairs.get(key) != ""}
        return found

    _change(session, "idle", changed, span is not None or bool(users or clusters))


@policy.command()
@click.argument("tables", metavar="TABLE=DAYS...", nargs=-1)
@asking
def retention(session: Session, tables: tuple[str, ...]) -> None:
    """Change for how many days rows of a table are kept; `TABLE=` goes back to what is usual."""
    pairs = _named(tables)
    days = {name: _days(value) for name, value in pairs.items() if value}

    def changed(wish: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in {**wish, **days}.items() if pairs.get(name) != ""}

    _change(session, "retention", changed, bool(pairs))


def _change(
    session: Session, subject: Subject, changed: Callable[[dict[str, Any]], dict[str, Any]], is_change: bool
) -> None:
    """What is wanted now, changed, and shown."""
    if not is_change:
        raise click.UsageError("Nothing to change: `--help` tells what there is, `daskscope policy show` how it is.")
    wish: Any = session.policy()[subject]
    found = session.set_policy(subject, changed({**wish}))
    click.echo(_text({subject: found}))


def _text(found: dict[str, Any]) -> str:
    """A line for each thing that is wanted, in the words that change it."""
    lines: dict[str, str] = {}
    for subject, wish in found.items():
        pairs: dict[str, Any] = wish if isinstance(wish, dict) else {}
        for name, value in pairs.items():
            inner: dict[str, Any] = value if isinstance(value, dict) else {"": value}
            for key, one in inner.items():
                place = f"{subject} {_ONE.get(name, name)} {key}".rstrip()
                lines[place] = _typed(one) if subject == "idle" else NEVER if one is None else str(one)
    return Record(lines).text()


def _typed(timeout_s: float | None) -> str:
    """As one may type it."""
    if timeout_s is None:
        return NEVER
    unit, in_s = next((unit, in_s) for unit, in_s in _UNITS.items() if timeout_s % in_s == 0 or in_s == 1)
    return f"{timeout_s / in_s:g}{unit}"


_ONE = {"users": "user", "clusters": "cluster", "timeout_s": "timeout"}
_UNITS = {"h": 3600, "m": 60, "s": 1}


def _named(pairs: tuple[str, ...]) -> dict[str, str]:
    """Name to what is said of it; empty for what is taken back. Raises UsageError."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, is_said, value = pair.partition("=")
        if not (name and is_said):
            raise click.UsageError(f"{pair} is no NAME=VALUE.")
        found[name] = value
    return found


def _span(text: str) -> int | None:
    """Seconds; None for never. Raises SettingsError."""
    return None if text == NEVER else seconds(text, "the timeout", _SPAN)


def _days(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise click.UsageError(f"{text} is no number of days.")
    return int(text)
