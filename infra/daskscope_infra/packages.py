"""Puts packages into a folder as a function needs them: for its machine and Python, trimmed, with byte code."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import click

from daskscope_infra import interpreters, trim

ROOT = Path(__file__).parents[2]
PYPROJECT = ROOT / "pyproject.toml"
PINS = ROOT / "constraints.txt"
TASK_ROOT = "/var/task"
"""Where Lambda unpacks a function."""

Family = Literal["light", "heavy"]
Architecture = Literal["arm64", "x86_64"]

_MACHINES: dict[Architecture, str] = {"arm64": "aarch64", "x86_64": "x86_64"}
_PLATFORMS = ("manylinux_2_28", "manylinux2014")
"""pyarrow and duckdb want glibc 2.28. Lambda has 2.34 under Python 3.12 and later; its 2.26 under 3.11 is too old."""


class BundleError(click.ClickException):
    """A bundle cannot be made; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a bundle is for."""

    architecture: Architecture = "arm64"
    python: str = "3.13"

    def __str__(self) -> str:
        return f"{self.architecture}-{self.python}"


def add_dependencies(family: Family, target: Target, folder: Path) -> None:
    """Install the group of the family, at the versions of constraints.txt. Raises BundleError."""
    interpreter = _interpreter(target)
    platforms = [f"--platform={platform}_{_MACHINES[target.architecture]}" for platform in _PLATFORMS]
    only = ["--only-binary=:all:", "--implementation=cp", f"--python-version={target.python}", *platforms]
    # pip judges `python_version` in requirements by the Python that it runs in, whatever --python-version says.
    pip = [sys.executable, "-m", "pip", "--python", interpreter, "--disable-pip-version-check"]
    what = ["--constraint", PINS, "--group", f"{PYPROJECT}:lambda-{family}"]
    _run(*pip, "install", "--no-compile", *only, "--target", folder, *what)
    _check_pins(folder)
    if stale := trim.trim(folder):
        raise BundleError(
            f"trim.py cuts {', '.join(stale)}, which is not there: look where it went, and mend the table."
        )
    finish(target, folder)


def unpack_wheel(folder: Path) -> None:
    """All of daskscope's wheel but its notes: a changed README changes no function. Raises BundleError."""
    with TemporaryDirectory() as dist:
        _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", dist, ROOT)
        (wheel,) = Path(dist).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if ".dist-info/" not in name])


def finish(target: Target, folder: Path) -> None:
    """Add byte code that nobody compares with its source: a zip keeps no times, and Lambda's disk is read-only.

    The same code gives the same bytes: it names files by where they will be, and sets have one order.
    Raises BundleError.
    """
    options = ["-q", "--invalidation-mode=unchecked-hash", "-s", folder, "-p", TASK_ROOT]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    _run(_interpreter(target), "-S", "-m", "compileall", *options, folder, environment=clean | {"PYTHONHASHSEED": "0"})
    for path in folder.rglob("*"):  # a function runs as another user than the one who built it
        path.chmod(0o755 if path.is_dir() else 0o644)


def _interpreter(target: Target) -> Path:
    found = interpreters.find(target.python)
    if found is None:
        raise BundleError(
            f"No Python {target.python} on this machine, and byte code for the functions is compiled by one: install "
            f"python{target.python} (or `pyenv install {target.python}`), or set the context key daskscope:python to a "
            f"version that is here, like {sys.version_info.major}.{sys.version_info.minor}."
        )
    return found


def _check_pins(folder: Path) -> None:
    pinned = {_plain(line) for line in PINS.read_text().split()}
    installed = {_plain(f"{found.name}=={found.version}") for found in distributions(path=[str(folder)])}
    if loose := sorted(installed - pinned):
        raise BundleError(f"constraints.txt does not say {', '.join(loose)}: what functions hold is pinned. Add it.")


def _plain(pin: str) -> str:
    return pin.lower().replace("_", "-")


def _run(*command: str | Path, environment: dict[str, str] | None = None) -> None:
    """Raises BundleError with what the command said."""
    done = subprocess.run(  # noqa: S603 - our own commands, no shell
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise BundleError(f"{' '.join(map(str, command))} failed:\n{done.stdout.strip()}")
