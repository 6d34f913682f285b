"""The commands that tell what was observed inside one cluster: its number, scheduler id, UUID, or `latest`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click

from daskscope import depth
from daskscope.arguments import LEVELS
from daskscope.cli.listing import cluster_argument, listing, number_of, table
from daskscope.profile import Profile
from daskscope.records import Records


@listing
@cluster_argument
@click.option("--role", type=click.Choice(get_args(depth.Role)), help="Only processes of this kind.")
def members(cluster: str, **options: Any) -> Records:
    """List the processes of CLUSTER, and packages of other versions than its scheduler's."""
    return depth.list_members(number_of(cluster, options["account"]), **options)


@listing
@cluster_argument
def workers(cluster: str, **options: Any) -> Records:
    """List the workers that CLUSTER had: last values and peaks."""
    return depth.list_workers(number_of(cluster, options["account"]), **options)


@listing
@cluster_argument
@click.option("--expected/--unexpected", default=None, help="Only those that somebody asked for, or nobody.")
def deaths(cluster: str, **options: Any) -> Records:
    """List the workers of CLUSTER that went, latest first, and why."""
    return depth.list_deaths(number_of(cluster, options["account"]), **options)


_since = click.option("--since", metavar="WHEN", help="From when on: how far back, like '36h', or a time in ISO 8601.")
_until = click.option("--until", metavar="WHEN", help="Up to when, likewise.")


def _lines(records: Records) -> str:
    return "\n".join(_line(record) for record in reversed(records))


def _line(record: dict[str, Any]) -> str:
    """As Dask prints it, after the process that it came from. A line may hold others, and a terminal's escapes."""
    dropped = f"... {record['dropped']} more lines of it were dropped here\n" if record["dropped"] else ""
    who = record["worker"] or record["role"]
    who = f"nanny of {who}" if record["role"] == "nanny" else who
    at = record["time"].replace("T", " ").removesuffix("Z")
    text = f"{dropped}({who})  {at} {record['logger']} - {record['level'].upper()} - {record['text']}"
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)


@functools.partial(listing, show=_lines)
@cluster_argument
@click.option("--level", type=click.Choice(LEVELS, case_sensitive=False), help="Only of this level or worse.")
@click.option("--text", help="Only lines with this in them, whatever its case.")
@click.option("--worker", metavar="ADDRESS", help="Only of this worker and its nanny.")
@click.option("--role", type=click.Choice(get_args(depth.Logging)), help="Only of processes of this kind.")
@_since
@_until
def logs(cluster: str, **options: Any) -> Records:
    """Print the log lines of CLUSTER in the order in which they were logged; --limit takes the latest."""
    return depth.logs(number_of(cluster, options["account"]), **options)


@listing
@cluster_argument
def spans(cluster: str, **options: Any) -> Records:
    """List the spans of CLUSTER, latest first, with the sums of their task groups."""
    return depth.list_spans(number_of(cluster, options["account"]), **options)


@listing
@cluster_argument
def groups(cluster: str, **options: Any) -> Records:
    """List the task groups of CLUSTER in the order in which they came."""
    return depth.list_groups(number_of(cluster, options["account"]), **options)


@listing
@cluster_argument
@click.option("--span", metavar="ID", help="Only of this span.")
@click.option("--by", type=click.Choice(["prefix"]), help="Sums over spans.")
def metrics(cluster: str, **options: Any) -> Records:
    """List the fine performance metrics of CLUSTER, those of a unit together, greatest first."""
    return depth.list_metrics(number_of(cluster, options["account"]), **options)


@listing
@cluster_argument
@click.option("--group", help="Only of this task group: its name or id.")
def tasks(cluster: str, **options: Any) -> Records:
    """List the tasks of CLUSTER, earliest first, if daskscope.analytics.tasks.transmit was on."""
    return depth.list_tasks(number_of(cluster, options["account"]), **options)


@listing
@cluster_argument
@click.option("--worker", metavar="ADDRESS", help="Of this worker instead of the whole cluster.")
def samples(cluster: str, **options: Any) -> Records:
    """List what CLUSTER, or one worker of it, was at in the course of time: at most 600 points, oldest first."""
    return depth.list_samples(number_of(cluster, options["account"]), **options)


def _stacks(records: Records) -> str:
    """A table, and what it does not show."""
    if not isinstance(records, Profile):
        return table(records)
    shown = sum(record["seconds"] for record in records)
    told = f"{shown:,.1f} of {records.total['seconds']:,.1f} s"
    cut = f"; {records.cut['seconds']:,.1f} s more in rare stacks that were left out" if records.cut["count"] else ""
    return f"{table(records)}\n{told}{cut}"


def _speedscope(command: Callable[..., Profile]) -> Callable[..., Records]:
    @functools.wraps(command)
    def run(*, speedscope: Path | None, **options: Any) -> Records:
        found = command(**options)
        if speedscope is not None:
            try:
                found.to_speedscope(speedscope)
            except OSError as error:
                raise click.FileError(str(speedscope), error.strerror or str(error)) from error
            click.echo(f"{speedscope} is for https://www.speedscope.app.", err=True)
        return found

    return run


@functools.partial(listing, show=_stacks)
@_speedscope
@cluster_argument
@click.option("--prefix", help="Only of this kind of task.")
@click.option("--by", type=click.Choice(["prefix"]), help="Keep the stacks of two kinds of task apart.")
@_since
@_until
@click.option(
    "--speedscope", type=click.Path(dir_okay=False, path_type=Path), help="Write it as a file for speedscope.app, too."
)
def profile(cluster: str, **options: Any) -> Profile:
    """What the workers of CLUSTER spent their time in: stacks, heaviest first."""
    return depth.get_profile(number_of(cluster, options["account"]), **options)
