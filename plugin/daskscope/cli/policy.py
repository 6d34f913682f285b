"""`daskscope policy`: what an account wants of reports, of idle clusters, and of how long rows are kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from daskscope.arguments import Subject
from daskscope.cli.asking import asking_server
from daskscope.cli.formats import TABLE, document
from daskscope.cli.listing import formatted
from daskscope.cli.wishes import MOST_DAYS, NEVER, days, named, seconds_of, text
from daskscope.records import printable

if TYPE_CHECKING:
    from daskscope.session import Session

_yes = click.option("--yes", is_flag=True, help="Do not ask.")


@click.group()
def policy() -> None:
    """Show what the account wants of reports, idle clusters and old rows, or change it (as an admin)."""


@policy.command("show")
@formatted(TABLE, "json")
@asking_server
def show_(session: Session, form: str) -> None:
    """Show what is in force."""
    found = session.policy()
    if form == "json":
        document(found)
    else:
        click.echo(text(found))


@policy.command()
@click.option("--public", type=click.Choice(["allow", "deny"]), help="Whether a report may be open by its link.")
@click.option("--keep-days", metavar="N|never", help="After so many days they go; `never` keeps them.")
@_yes
@asking_server
def reports(session: Session, public: str | None, keep_days: str | None, yes: bool) -> None:
    """Change what is wanted of performance reports. Where that takes reports away, or hides them, it asks."""
    changes: dict[str, Any] = {} if public is None else {"public": public}
    if keep_days is not None:
        changes["keep_days"] = None if keep_days == NEVER else days(keep_days)
    if not yes:
        _confirm(_of_reports(session, changes))
    _change(session, "reports", lambda wish: {**wish, **changes}, bool(changes))


@policy.command()
@click.argument("span", metavar="[SPAN]", required=False)
@click.option(
    "--user", "users", metavar="NAME=SPAN", multiple=True, help="For clusters of this one; `=` alone: as all."
)
@click.option("--cluster", "clusters", metavar="N=SPAN", multiple=True, help="For this one; `=` alone: as its user's.")
@asking_server
def idle(session: Session, span: str | None, users: tuple[str, ...], clusters: tuple[str, ...]) -> None:
    """Have clusters that idle for SPAN closed: those whose own settings say nothing, and who let others close them.

    SPAN is a time span like '2h', or `never`. What is said of a cluster wins over what is said of its user, and that
    over the account's. `--user ann=` takes back what was said of ann.
    """
    said = {"users": named(users), "clusters": named(clusters)}

    def changed(wish: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {**wish} if span is None else {**wish, "timeout_s": seconds_of(span)}
        for name, pairs in said.items():
            before: dict[str, Any] = found.get(name) or {}
            known = before | {key: seconds_of(value) for key, value in pairs.items() if value}
            found[name] = {key: value for key, value in known.items() if pairs.get(key) != ""}
        return found

    _change(session, "idle", changed, span is not None or bool(users or clusters))


@policy.command()
@click.argument("tables", metavar="TABLE=DAYS...", nargs=-1)
@_yes
@asking_server
def retention(session: Session, tables: tuple[str, ...], yes: bool) -> None:
    """Change for how many days rows of a table are kept; `TABLE=` goes back to what is usual.

    It asks where rows are to be kept for less long than was said before, or than nobody has said.
    """
    pairs = named(tables)
    wanted = {name: days(value) for name, value in pairs.items() if value}
    if wanted and not yes:
        before: Any = session.policy()["retention"]
        _confirm([f"rows of {name} older than {n} days go for good" for name, n in wanted.items()
                  if n < before.get(name, MOST_DAYS + 1)])  # fmt: skip

    def changed(wish: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in {**wish, **wanted}.items() if pairs.get(name) != ""}

    _change(session, "retention", changed, bool(pairs))


def _of_reports(session: Session, changes: dict[str, Any]) -> list[str]:
    """What such a change does to reports that are there."""
    if not changes:
        return []
    kept, found = session.list_performance_reports(), list[str]()
    if changes.get("public") == "deny" and (n := sum(not report["private"] for report in kept)):
        found.append(f"{n} that whoever has the address may see {'is' if n == 1 else 'are'} for members alone")
    if (n_days := changes.get("keep_days")) is not None:
        before = datetime.now(UTC) - timedelta(days=n_days)
        if n := sum(datetime.fromisoformat(report["created"]) < before for report in kept):
            found.append(f"{n} older than {n_days} days {'goes' if n == 1 else 'go'} for good")
    return found


def _confirm(done: list[str]) -> None:
    """Raises Abort unless somebody says yes; without a terminal nobody does."""
    if done:
        click.confirm(printable(f"Then, within minutes: {'; '.join(done)}. Go on?"), abort=True, err=True)


def _change(
    session: Session, subject: Subject, changed: Callable[[dict[str, Any]], dict[str, Any]], is_change: bool
) -> None:
    """What is wanted now, changed, and shown."""
    if not is_change:
        raise click.UsageError("Nothing to change: `--help` tells what there is, `daskscope policy show` how it is.")
    wish: Any = session.policy()[subject]
    found = session.set_policy(subject, changed({**wish}))
    sentence: object = found.pop("sentence", None)
    click.echo(text({subject: found}))
    if isinstance(sentence, str):
        click.echo(printable(sentence), err=True)
