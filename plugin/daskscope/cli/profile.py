"""The command that tells what workers spend their time in."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from daskscope.cli.asking import maybe_a_cluster
from daskscope.cli.listing import listing
from daskscope.cli.times import OF_ONE, of_one, since, until, user

if TYPE_CHECKING:
    from daskscope.profile import Profile
    from daskscope.records import Records
    from daskscope.session import Session


def _kept(command: Callable[..., Profile]) -> Callable[..., Records]:
    @functools.wraps(command)
    def run(session: Session, *, speedscope: Path | None, **options: Any) -> Records:
        found = command(session, **options)
        if speedscope is not None:
            try:
                found.to_speedscope(speedscope)
            except OSError as error:
                raise click.FileError(str(speedscope), error.strerror or str(error)) from error
            click.echo(f"{speedscope} is for https://www.speedscope.app.", err=True)
        return found

    return run


@listing
@_kept
@maybe_a_cluster
@click.option("--computation", metavar="ID", help="Only while this computation ran.")
@click.option("--prefix", help="Only of this kind of task.")
@user
@click.option(
    "--by", type=click.Choice(["prefix", "user"]), help="Keep the stacks of two kinds of task, or users, apart."
)
@since(OF_ONE)
@until
@click.option(
    "--speedscope", type=click.Path(dir_okay=False, path_type=Path), help="Write it as a file for speedscope.app, too."
)
def profile(
    session: Session, cluster: str | None, computation: str | None, since: str | None, **options: Any
) -> Profile:
    """What the workers of CLUSTER, or of all, spent their time in: stacks, heaviest first."""
    return session.get_profile(cluster, computation, since=of_one(since, cluster or computation), **options)
