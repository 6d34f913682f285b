"""docs/deploy.md names every choice with its default and every target; what it says to try at home works."""

import dataclasses
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import httpx
import pytest

from daskscope_infra.settings import PREFIX, Settings
from tests.end_to_end.house import eventually

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
PORT = "4566"


def blocks(text: str) -> list[str]:
    """What stands there to be typed or saved."""
    return [
        dedent(block).strip("\n") for block in re.findall(r"(?:^    .*\n|^\n(?=    |\n))+", text, re.M) if block.strip()
    ]


def test_every_context_key_stands_there_with_its_default() -> None:
    told = dict(re.findall(rf"^\| `{PREFIX}([a-z-]+)` \| `([^`]*)` \|", PAGE, re.M))
    defaults = {key.replace("_", "-"): value for key, value in dataclasses.asdict(Settings()).items()}
    assert told == {k: v if isinstance(v, str) else json.dumps(v) for k, v in defaults.items()}


def test_every_target_is_in_the_makefile() -> None:
    told = set(re.findall(r"\bmake ([a-z]+)\b", PAGE))
    assert {"bootstrap", "deploy", "destroy"} <= told
    assert told <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))


class Terminal:
    """Runs what is typed, one after another, as one shell would: with what was exported before. Says yes to all."""

    def __init__(self, home: Path) -> None:
        self._exported = home / "exported"
        self._exported.touch()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DASK"))}
        self.environment = kept | {"HOME": str(home)}

    def run(self, typed: str) -> str:
        script = f"set -euo pipefail\n. {self._exported}\n{typed}\nexport -p > {self._exported}"
        done = subprocess.run(
            ["bash", "-c", script], cwd=ROOT, env=self.environment, input="y\n", capture_output=True, text=True
        )
        assert done.returncode == 0, typed + done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.fixture
def typed() -> list[str]:
    """The blocks of the section, with a port that is free."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    section = PAGE.partition("## Try it without AWS\n")[2].partition("\n## ")[0]
    return [block.replace(PORT, port) for block in blocks(section)]


@pytest.fixture
def emulator(typed: list[str], terminal: Terminal, tmp_path: Path) -> Iterator[None]:
    """The first terminal, until Ctrl-C."""
    start = typed.pop(0)
    (port,) = re.findall(r"GATEWAY_PORT=(\d+)", start)
    unpacked = tmp_path / "functions"
    unpacked.mkdir()
    with (tmp_path / "emulator.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", start],
            cwd=ROOT,
            env=terminal.environment | {"TMPDIR": str(unpacked)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def answers() -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/_ministack/health", trust_env=False).is_success
        except httpx.TransportError:
            assert process.poll() is None, (tmp_path / "emulator.log").read_text()
            return False

    try:
        eventually(answers, bool, within_s=300)
        yield
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
        # Up to 300 MB each, and pytest keeps the folders of three runs.
        shutil.rmtree(unpacked)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_trying_it_without_aws_goes_as_the_page_says(
    typed: list[str], terminal: Terminal, emulator: None, tmp_path: Path
) -> None:
    deploy, server, ask, destroy = typed
    told = terminal.run(deploy)
    printed = dict(re.findall(r"^  export (\w+)=(.+)$", told, re.M))
    (api,) = re.findall(r"^daskscope is at https?://([^.]+)\.", told, re.M)
    # What the reader is told to put in: the API's id and the tokens.
    server = re.sub(r"(\w+)=dks_\.\.\.", lambda found: f"{found[1]}={printed[found[1]]}", server.replace("<id>", api))
    terminal.run(server)

    (amounts,) = (block for block in blocks((ROOT / "docs" / "tutorial.md").read_text()) if "def read_amount" in block)
    (tmp_path / "amounts.py").write_text(amounts.partition("\ntry/bin/")[0])
    cluster, clusters, exceptions = ask.replace("amounts.py", str(tmp_path / "amounts.py")).splitlines()
    assert f"/_aws/execute-api/{api}/$default/c/" in terminal.run(cluster)
    assert re.search(r"^ *1 .* 300 +100$", terminal.run(clusters), re.M), "tasks, and those that erred"
    eventually(lambda: terminal.run(exceptions), lambda said: "ValueError" in said)

    (address,) = re.findall(r"SERVER='([^']+)'", server)
    token = {"token": printed["DASK_DASKSCOPE__TOKEN"]}
    assert httpx.post(f"{address}/login", data=token, trust_env=False).status_code == 303
    assert "The stack daskscope is gone." in terminal.run(destroy)
