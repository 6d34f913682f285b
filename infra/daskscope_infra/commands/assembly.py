"""The stack as the app writes it, before AWS knows of it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from daskscope_infra.commands.toolchain import Toolchain


@dataclass(frozen=True, slots=True)
class Assembly:
    """What `cdk synth` wrote into `folder`: a template, and the files that go with it."""

    folder: Path
    stack: str
    template: dict[str, Any]

    def kinds(self) -> Counter[str]:
        """How many resources of which kind, like `Lambda Function`."""
        kinds = (resource["Type"] for resource in self.template["Resources"].values())
        return Counter(kind.removeprefix("AWS::").replace("::", " ") for kind in kinds)


def make(chain: Toolchain, context: tuple[str, ...], folder: Path) -> Assembly:
    """Runs the app. Raises ClickException."""
    options = [word for pair in context for word in ("--context", pair)]
    done = chain.run("synth", "--quiet", "--output", str(folder), *options, quiet=True)
    if done.returncode:
        raise click.ClickException(f"The stack could not be written:\n{done.stdout.strip()}")
    artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"]
    (stack,) = (found for found in artifacts.values() if found["type"] == "aws:cloudformation:stack")
    template = json.loads((folder / stack["properties"]["templateFile"]).read_text())
    return Assembly(folder, stack["properties"].get("stackName") or stack["displayName"], template)
