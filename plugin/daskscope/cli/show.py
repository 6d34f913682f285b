"""The command that shows one cluster or one computation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from daskscope.cli.asking import asking, clusters_known, number_of
from daskscope.cli.formats import TABLE, document
from daskscope.cli.listing import formatted
from daskscope.cli.status import answers, heading
from daskscope.cli.table import table
from daskscope.errors import NotFound
from daskscope.records import Record, Records, printable, shown

if TYPE_CHECKING:
    from daskscope.session import Session

FEW = 5
"""Records of each list of a cluster."""

_NUMBER = re.compile(r"\d+|Scheduler-.*|latest", re.ASCII)
"""What names a cluster for sure; any other name may be a cluster's UUID or a computation's id."""


@click.command()
@click.argument("which", metavar="ID", shell_complete=clusters_known)
@formatted(TABLE, "json")
@asking
def show(session: Session, which: str, form: str) -> None:
    """Show all that is known of ID: a cluster (number, scheduler id, UUID, or `latest`) or a computation."""
    found, is_cluster = _found(session, which)
    if form == "json":
        document(found)
    elif is_cluster:
        click.echo("\n\n".join(_cluster(session, found)))
    else:
        click.echo("\n\n".join(_computation(found)))


def _found(session: Session, which: str) -> tuple[Record, bool]:
    """The record, and whether it is a cluster's. Raises NotFound."""
    try:
        return session.get_cluster(number_of(session, which)), True
    except NotFound:
        if _NUMBER.fullmatch(which):
            raise
    return session.get_computation(which), False


def _cluster(session: Session, found: Record) -> Iterator[str]:
    number = found["id"]
    yield f"{heading(found)}\n{printable(found.url or '')}".rstrip()
    yield answers(found)
    if "completeness" in found:
        yield printable(found["completeness"]["sentence"])
    yield _facts(found, but=("answers", "completeness", "url", "id", "name", "user"))
    latest = {
        "computations": session.list_computations(number, limit=FEW),
        "exceptions": session.list_exceptions(since=None, cluster_id=number, limit=FEW),
        "deaths": session.list_deaths(number, limit=FEW),
    }
    yield from (_latest(name, records, number) for name, records in latest.items() if records)


def _latest(name: str, records: Records, number: int) -> str:
    head = name.capitalize()
    if len(records) == FEW:
        head = f"{head}, the latest; `daskscope {name} {number}` lists all"
    return f"{head}:\n{table(records)}"


def _computation(found: Mapping[str, Any]) -> Iterator[str]:
    yield printable(f"Computation {found['id']} of cluster {found['cluster_id']}: {found['status']}")
    yield _facts(found, but=("id", "cluster_id", "status", "code", "groups"))
    yield from (_snippet(each) for each in found.get("code") or ())
    if groups := found.get("groups"):
        columns = ("name", "n_tasks", "n_tasks_erred", "start", "stop", "seconds", "bytes")
        yield f"Task groups:\n{table(Records(groups, columns=columns))}"


def _snippet(frame: Mapping[str, Any]) -> str:
    """A piece of the user's code, as it stands in his file."""
    text = "".join(c if c.isprintable() or c in "\n\t" else " " for c in frame["text"] or "(the text is not kept)")
    return f"{printable(frame['file'] or '?')}:{frame['line'] or '?'}\n" + "\n".join(
        f"    {s}" for s in text.splitlines()
    )


def _facts(found: Mapping[str, Any], but: tuple[str, ...]) -> str:
    """A line for each key with something behind it."""
    told = {name: text for name, value in found.items() if name not in but and (text := shown(name, value))}
    width = max(map(len, told), default=0)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in told.items())
