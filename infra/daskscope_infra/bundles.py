"""The folders that become the functions' zips: daskscope and a locked group of dependencies, made without Docker.

`python -m daskscope_infra.bundles` makes both and says their sizes. A bundle has the same files and bytes whenever it
is made of the same things, so that a deploy changes only functions that changed. What was made stays in build/bundles:

    <family>-<architecture>-<python>.dependencies.<hash>/    the installed group; the hash says of what
    <family>-<architecture>-<python>.<hash>/                 a bundle: links to those files, and daskscope
    <family>-<architecture>-<python>.lock                    held by whoever makes one of these
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tomllib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import click

from daskscope_infra import packages, trim
from daskscope_infra.packages import Architecture, BundleError, Family, Target

__all__ = ["Architecture", "BundleError", "Family", "Target", "build", "unpacked_bytes"]

BUNDLES = packages.ROOT / "build" / "bundles"


def build(family: Family, target: Target, bundles: Path = BUNDLES) -> Path:
    """The folder of a bundle, made unless it is there. Raises BundleError.

    Only the first build of a group of dependencies needs a package index. A build that is killed leaves nothing that
    looks like a bundle, and of two at once the second waits for what the first one makes.
    """
    name = f"{family}-{target}"
    bundles.mkdir(parents=True, exist_ok=True)
    with _alone(bundles / f"{name}.lock"), TemporaryDirectory() as scratch:
        for torn in bundles.glob(f"{name}.*.part"):
            shutil.rmtree(torn)
        ours = Path(scratch)
        packages.unpack_wheel(ours)
        dependencies = bundles / f"{name}.dependencies.{_recipe(family, target)}"
        bundle = bundles / f"{name}.{_digest(dependencies.name.encode(), *_contents(ours))}"
        _make_once(dependencies, lambda part: _add_dependencies(family, target, part))
        _make_once(bundle, lambda part: _add_all(target, ours, dependencies, part))
    return bundle


def unpacked_bytes(bundle: Path) -> int:
    """What Lambda holds against its limit."""
    return sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file())


@contextmanager
def _alone(lock: Path) -> Generator[None]:
    """One at a time; the system lets go of the lock of a process that died."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make_once(folder: Path, fill: Callable[[Path], None]) -> None:
    """`folder` is there whole, or not at all."""
    if folder.exists():
        return
    part = folder.with_name(f"{folder.name}.part")
    part.mkdir()
    fill(part)
    part.rename(folder)


def _add_dependencies(family: Family, target: Target, folder: Path) -> None:
    click.echo(f"Installing lambda-{family} for {target.architecture}, Python {target.python} ...", err=True)
    packages.add_dependencies(family, target, folder)


def _add_all(target: Target, ours: Path, dependencies: Path, folder: Path) -> None:
    shutil.copytree(ours, folder, dirs_exist_ok=True)
    packages.finish(target, folder)
    shutil.copytree(dependencies, folder, dirs_exist_ok=True, copy_function=os.link)


def _recipe(family: Family, target: Target) -> str:
    """Hash of everything that decides what a bundle holds beside daskscope, and how it looks."""
    groups = tomllib.loads(packages.PYPROJECT.read_text())["dependency-groups"]
    wanted = json.dumps([family, str(target), groups["lambda-light"], groups["lambda-heavy"]])
    ways = [Path(module).read_bytes() for module in (packages.__file__, trim.__file__)]
    return _digest(wanted.encode(), packages.PINS.read_bytes(), *ways)


def _contents(folder: Path) -> Iterator[bytes]:
    """Names and bytes of all files, in the order of their names."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield str(path.relative_to(folder)).encode()
        yield path.read_bytes()


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


@click.command()
@click.option("--architecture", type=click.Choice(get_args(Architecture)), default="arm64", show_default=True)
@click.option("--python", default="3.13", show_default=True)
def main(architecture: Architecture, python: str) -> None:
    """Make the bundles of both families."""
    for family in get_args(Family):
        folder = build(family, Target(architecture, python))
        click.echo(f"{family}: {unpacked_bytes(folder) / 1e6:.1f} MB unpacked, in {folder}")


if __name__ == "__main__":
    main()
