"""The command that prints log lines."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlsplit

import click

from daskscope.arguments import LEVELS, Logging
from daskscope.cli.asking import asking, maybe_a_cluster, named
from daskscope.cli.formats import TABLE, line
from daskscope.cli.listing import put, shaped
from daskscope.cli.times import ALL, of_one, since, until
from daskscope.records import printable

if TYPE_CHECKING:
    from daskscope.session import Session

DAY = "1 day"
FOLLOWED = (TABLE, "jsonl")
"""What can be written before the end is known."""

INDENT = " " * 4
"""Of the second line of a text, and those after it."""

_COLOURS = {"warning": "yellow", "error": "red", "critical": "red"}
_NOTHING = "No such log line. Of each process those from daskscope.analytics.logs.level on are kept (warning)."


@click.command()
@click.option("--workers", metavar="WHO,...", help="Only of these workers and their nannies: hosts, addresses, names.")
@click.option("--no-scheduler", is_flag=True, help="Leave the scheduler's lines out.")
@click.option("--role", type=click.Choice(get_args(Logging)), help="Only of processes of this kind.")
@click.option("--filter", metavar="TEXT", help="Only lines with this in them, whatever its case.")
@click.option("--level", type=click.Choice(LEVELS, case_sensitive=False), help="Only of this level or worse.")
@since(f"{DAY}; {ALL} with CLUSTER")
@until
@click.option("--tail", is_flag=True, help="Go on with what comes, until the cluster has ended.")
@click.option("--address", "is_whole", is_flag=True, help="Show whole addresses, not hosts alone.")
@shaped
@asking
@maybe_a_cluster
def logs(
    session: Session,
    cluster: str | None,
    *,
    form: str,
    columns: str | None,
    workers: str | None,
    no_scheduler: bool,
    since: str | None,
    tail: bool,
    is_whole: bool,
    **options: Any,
) -> None:
    """Print the log lines of CLUSTER, or of all, in the order in which they were logged; --limit takes the latest.

    Each begins with the host that it came from; of all clusters, with the cluster's number before it.
    """
    told = functools.partial(_told, is_whole=is_whole, is_of_all=cluster is None)
    wanted: dict[str, Any] = {**options, "workers": named(workers), "scheduler": not no_scheduler}
    wanted["since"] = of_one(since, cluster, DAY)
    if tail:
        if form not in FOLLOWED or columns:
            raise click.UsageError("--tail prints lines or --format jsonl as they come, and neither --columns.")
        if cluster is None:
            raise click.UsageError("--tail follows one cluster: name it, or say `latest`.")
        for record in session.logs(cluster, follow=True, **_but_none(wanted)):
            line(record) if form == "jsonl" else click.echo(told(record))
        return
    put(session.logs(cluster, **wanted)[::-1], form, columns, lambda found: "\n".join(map(told, found)), _NOTHING)


def _but_none(wanted: dict[str, Any]) -> dict[str, Any]:
    """What following takes: it has no end."""
    return {key: value for key, value in wanted.items() if value is not None}


def _told(record: dict[str, Any], *, is_whole: bool, is_of_all: bool) -> str:
    """As Dask prints it, after the process that it came from. A line may hold others, and a terminal's escapes."""
    who = record["worker"] or record["role"]
    who = who if is_whole else _host(who)
    who = f"{record['cluster_id']} {who}" if is_of_all else who
    level = click.style(record["level"].upper(), fg=_COLOURS.get(record["level"]))
    dropped = f"... {record['dropped']} more lines of it were dropped here\n" if record["dropped"] else ""
    head = printable(f"({who})   {_time(record['time'])} {record['logger']} - ")
    return f"{dropped}{head}{level} - {_continued(record['text'])}"


def _continued(text: str) -> str:
    """The lines of one, but for the first set in: a text with line breaks is not taken for lines of others."""
    first, *others = ("".join(c if c.isprintable() or c == "\t" else " " for c in line) for line in text.split("\n"))
    return "\n".join([first, *(f"{INDENT}{line}".rstrip() for line in others)])


def _host(who: str) -> str:
    """Of an address like tcp://10.0.2.96:40331; what is none stays."""
    if "://" not in who:
        return who
    try:
        return urlsplit(who).hostname or who
    except ValueError:
        return who


def _time(text: str) -> str:
    """In microseconds, as Dask's own lines have it: 2023-04-03 00:28:30.454000."""
    day, _, fraction = text.replace("T", " ").removesuffix("Z").partition(".")
    return f"{day}.{fraction:0<6}"
