"""The app itself, and what others say of its template."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_s3 as s3

from daskscope_infra.bundles import Target, build
from daskscope_infra.commands import toolchain
from daskscope_infra.stack import check
from tests.infra.template import Template

TARGET = Target("x86_64", f"{sys.version_info[0]}.{sys.version_info[1]}")
CONTEXT = ("-c", f"daskscope:architecture={TARGET.architecture}", "-c", f"daskscope:python={TARGET.python}")


def _alone() -> list[str]:
    """What a command is put behind so that it has no network, where this machine can do that."""
    unshare = shutil.which("unshare")
    for way in ([unshare, "--net"], [unshare, "--map-root-user", "--net"]) if unshare else ():
        if subprocess.run([*way, "true"], capture_output=True).returncode == 0:
            return [part for part in way if part]
    return []


def _synth(folder: Path, *context: str) -> subprocess.CompletedProcess[str]:
    """`cdk synth` as `make deploy` would, by somebody whom AWS does not know, on a machine that reaches nothing."""
    chain = toolchain.find()
    nowhere = {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
    }
    environment = {name: value for name, value in chain.environment().items() if not name.startswith("AWS_")} | nowhere
    command = [chain.node, chain.cli / "bin" / "cdk", "synth", "--quiet", "--no-notices", "--output", folder, *context]
    return subprocess.run(
        [*_alone(), *map(str, command)], cwd=toolchain.ROOT, env=environment, capture_output=True, text=True
    )


def test_synth_needs_neither_network_nor_credentials(tmp_path: Path, plain: Template) -> None:
    bundles = {build("light", TARGET), build("heavy", TARGET)}
    done = _synth(tmp_path / "assembly", *CONTEXT)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads((tmp_path / "assembly" / "daskscope.template.json").read_text())
    assert told["Resources"].keys() == plain.body["Resources"].keys()
    zipped = {path.name for path in (tmp_path / "assembly").glob("asset.*") if path.is_dir()}
    assert len(zipped) == len(bundles)


@pytest.mark.parametrize(
    ("context", "told"),
    [
        ("daskscope:architecure=x86_64", "daskscope:architecure is no setting of daskscope; allowed: daskscope:name,"),
        ("daskscope:log-days=31", "daskscope:log-days is '31'; allowed: 1, 3,"),
    ],
)
def test_a_bad_setting_is_a_sentence_and_no_traceback(tmp_path: Path, context: str, told: str) -> None:
    done = _synth(tmp_path / "assembly", "-c", context)
    assert done.returncode != 0
    assert f"Error: {told}" in done.stderr
    assert "Traceback" not in done.stderr


def test_nag_looks_at_what_is_made(tmp_path: Path) -> None:
    """Else that it finds nothing in our stack would say nothing."""
    app = App(outdir=str(tmp_path))
    check(app)
    s3.Bucket(Stack(app, "Careless"), "Bucket")
    with pytest.raises(RuntimeError, match="AwsSolutions-S10"):
        app.synth()


@pytest.mark.parametrize("name", ["plain", "chosen"])
def test_cloudformation_would_take_the_template(name: str, request: pytest.FixtureRequest) -> None:
    template: Template = request.getfixturevalue(name)
    (path,) = template.folder.glob("*.template.json")
    # W3005: the CDK says of a function that it needs its role, which the reference to the role says too.
    done = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), "--ignore-checks", "W3005", "--", path],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
