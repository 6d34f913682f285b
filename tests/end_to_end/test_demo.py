"""`daskscope demo` as a new user runs it: twice, with a history that stays, and interrupted."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.wiring import connect

pytestmark = pytest.mark.timeout(240)


def start(tmp_path: Path, *options: str) -> subprocess.Popen[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-u",
        "-m",
        "daskscope.cli",
        "demo",
        "--port",
        str(port),
        "--data",
        str(tmp_path / "data"),
    ]
    # One temporary folder and one data folder of its own: whatever is left of the run can be told by their names.
    env = os.environ | {"XDG_DATA_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    return subprocess.Popen(
        [*command, *options],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def left(tmp_path: Path) -> list[str]:
    """Command lines of the processes that still carry this run's environment."""
    mark, found = f"TMPDIR={tmp_path}".encode(), list[str]()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # It ended meanwhile, or is not ours.
    return found


def shows(tmp_path: Path, number: int) -> None:
    output, _ = start(tmp_path, "--exit").communicate()
    assert re.search(r"page of this run: http://127\.0\.0\.1:\d+/local/analytics/clusters/(\d+)", output), output
    assert f"/clusters/{number}\n" in output
    assert "20 failed." in output
    assert output.endswith("Stopped.\n")
    assert not left(tmp_path)
    assert not list(tmp_path.glob("daskscope-demo-*"))


def test_a_run_shows_its_cluster_after_those_of_before(tmp_path: Path) -> None:
    earlier = connect(LocalEnv(data=str(tmp_path / "data")))
    earlier.clusters.enrol("local", "0" * 32, 0.0, 0.0)
    earlier.close()
    shows(tmp_path, 2)
    assert not list((tmp_path / "home").rglob("*.json")), "a server that has stopped is still announced"


@pytest.mark.long
def test_two_runs_show_two_clusters(tmp_path: Path) -> None:
    for number in (1, 2):
        shows(tmp_path, number)
    assert not list((tmp_path / "home").rglob("*.json")), "a server that has stopped is still announced"


@pytest.mark.parametrize(
    "moment", ["Starting `daskscope serve`", "Starting a scheduler", "an array", "server keeps running"]
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.long
def test_an_interrupt_leaves_nothing(tmp_path: Path, moment: str, number: signal.Signals) -> None:
    demo = start(tmp_path)
    assert demo.stdout is not None
    with demo.stdout:
        assert any(moment in line for line in demo.stdout)
        demo.send_signal(number)
        rest = demo.stdout.read()
    assert rest.endswith("Stopped.\n"), rest
    assert "Traceback" not in rest, rest
    assert demo.wait() == (0 if moment == "server keeps running" else 130)
    assert not left(tmp_path)
    assert not list(tmp_path.glob("daskscope-demo-*"))
