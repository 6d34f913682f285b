"""`python -m bench.year make FOLDER [--scale S]`."""

from __future__ import annotations

from pathlib import Path

import click

from bench.rows import progress
from bench.year.plan import plan
from bench.year.registry import register
from bench.year.size import Size, scaled
from bench.year.writing import write
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.service.cataloguer import Cataloguer
from daskscope_lambdas.wiring import connect


@click.group()
def main() -> None:
    """A made-up year of a team."""


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--scale", type=float, default=1.0, show_default=True, help="Part of the year: so many of its days.")
@click.option("--processes", type=click.IntRange(1), default=2, show_default=True, help="Days written at a time.")
def make(folder: Path, scale: float, processes: int) -> None:
    """Write the data folder of a server that has been there for the year; goes on where it was stopped."""
    try:
        size = scaled(scale)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--scale") from error
    build(folder, size, processes)


def build(folder: Path, size: Size, processes: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for day in write(folder / "lake", size, processes):
        if day % 10 == 0 or day == size.days - 1:
            progress(f"day {day + 1} of {size.days}")
    adapters = connect(LocalEnv(data=str(folder)))
    try:
        progress("registry")
        register(adapters, plan(size), size)
        progress("catalog")
        Cataloguer(adapters).run()
    finally:
        adapters.close()


if __name__ == "__main__":
    main(prog_name="python -m bench.year")
