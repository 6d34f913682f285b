"""The command that says how a cluster does, in words and by its exit code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from daskscope.cli.asking import asking, cluster_argument, number_of
from daskscope.cli.formats import TABLE, document
from daskscope.cli.listing import formatted
from daskscope.records import printable

if TYPE_CHECKING:
    from daskscope.session import Session

EXITS = {"finished": 0, "failed": 10, "running": 11, "lost": 12}
"""State to exit code."""

QUESTIONS = {
    "finished": "Did it finish?",
    "exceptions": "What failed?",
    "cost": "What did it cost?",
    "time": "What took the time?",
    "running": "Why is it still running?",
}
_COLOURS = {"finished": "green", "failed": "red", "running": "blue", "lost": "red"}


@click.command()
@formatted(TABLE, "json")
@asking
@cluster_argument
def status(session: Session, cluster: str, form: str) -> None:
    """Five answers about CLUSTER: its number, scheduler id, UUID, or `latest`.

    Exits with 0 if it finished, 10 if it failed: it closed with tasks left to do or given up, or something failed in
    it; 11 if it runs, 12 if it is lost.
    """
    found = session.get_cluster(number_of(session, cluster))
    state = state_of(found["answers"])
    if form == "json":
        document({**{key: found[key] for key in ("id", "name", "user")}, "state": state, "answers": found["answers"]})
    else:
        told = click.style(state, fg=_COLOURS[state], bold=True)
        click.echo(f"{heading(found)}: {told}\n\n{answers(found)}")
    click.get_current_context().exit(EXITS[state])


def state_of(answers: Mapping[str, Any]) -> str:
    """One of EXITS."""
    finished = answers["finished"]["verdict"]
    if finished in ("running", "lost"):
        return finished
    return "failed" if finished == "unfinished" or answers["exceptions"]["verdict"] == "failed" else "finished"


def heading(found: Mapping[str, Any]) -> str:
    """Which cluster that is."""
    return printable(
        f"Cluster {found['id']}, {found['name'] or 'without a name'}, of {found['user'] or 'somebody unknown'}"
    )


def answers(found: Mapping[str, Any]) -> str:
    """A line for each of the five questions."""
    width = max(map(len, QUESTIONS.values()))
    return "\n".join(
        f"{question:<{width}}  {printable(found['answers'][name]['sentence'])}"
        for name, question in QUESTIONS.items()
        if name in found["answers"]
    )
