"""A server that answers with code: nothing of it is run or kept, and nobody asks it for anything."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.plugin.canaries.capture import Answer, Asked, Capture

MARK = "served_by_the_server"

PROGRAM = """
import json, os, sys

connections, made, started = [], [], []

def watch(event, args):
    if event == "socket.connect" and isinstance(args[1], tuple):
        connections.append(args[1][1])
    elif event == "compile" and args[0] is not None:
        made.append(args[0].decode("utf-8", "replace") if isinstance(args[0], bytes) else str(args[0]))
    elif event == "exec":
        made.append(f"{args[0].co_filename} {args[0].co_names} {args[0].co_consts}")
    elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"):
        started.append(event)

def main():
    import distributed, httpx
    with distributed.LocalCluster(
        1, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=None
    ) as cluster, cluster.get_client() as client:
        address = cluster.scheduler.address
        sys.addaudithook(watch)
        import daskscope
        from daskscope import discovery, settings
        found = discovery.find_server(settings.load()).url, len(connections)
        daskscope.register(client)
        at_register = list(connections)
        assert client.submit(int, 1).result() == 1
        daskscope.preview(client)  # is sent, too
        port = int(address.rpartition(":")[2])
        workers = [int(each.rpartition(":")[2]) for each in cluster.scheduler.workers]
        thread = cluster.scheduler.extensions["daskscope"].sender._thread
    thread.join(30)  # After a foreign answer the scheduler does not wait for it long.
    assert not thread.is_alive(), "and it has sent what there was"
    print(json.dumps({
        "found": found, "of dask": [port, *workers], "at register": at_register, "connections": connections,
        "started": started, "made": [each for each in made if MARK in each], "n_made": len(made),
        "modules": [name for name in sys.modules if MARK in name],
    }))

MARK = sys.argv[1]
if __name__ == "__main__":
    main()
"""


def code(marker: Path) -> str:
    """Whoever runs this leaves a file."""
    return (
        f"import os  # {MARK}\nopen({str(marker)!r}, 'w').close()\ndef dask_setup(*args): open({str(marker)!r}, 'w')\n"
    )


def json_of_code(marker: Path) -> bytes:
    """A good reply, and all that one might be tempted to heed."""
    source = code(marker)
    wishes: list[Any] = ["identity", "exec", source, "eval:" + source, {"exec": source}, 5, None, f"import {MARK}"]
    extra = dict.fromkeys(("exec", "code", "preload", "plugin", "eval", "script", "module", "__reduce__"), source)
    return json.dumps({"id": 1, "url": f"c/1?{MARK}", "wish": wishes, **extra}).encode()


def test_nothing_of_it_is_run_or_kept(tmp_path: Path) -> None:
    marker = tmp_path / "was run"
    bodies = itertools.cycle([json_of_code(marker), code(marker).encode()])

    def answer(asked: Asked) -> Answer:
        return 200, next(bodies)

    home = tmp_path / "home"
    home.mkdir()
    program = home / "program.py"
    program.write_text(PROGRAM)
    with Capture(answer).running() as capture:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")} | {
            "HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1",
            "DASK_DASKSCOPE__SERVER": capture.url, "DASK_DASKSCOPE__TOKEN": "dst_x",
            "DASK_DASKSCOPE__ANALYTICS__INTERVAL": "100ms", "DASK_TEMPORARY_DIRECTORY": str(home),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, program, MARK], env=environment, cwd=home, capture_output=True, text=True, timeout=100
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["made"], told["modules"], told["started"]) == ([], [], [])
    assert told["n_made"], "what is compiled or run is seen"
    assert not marker.exists()
    assert not [file for file in home.rglob("*") if file.is_file() and file != program and _holds(file)]
    assert told["found"] == [capture.url, 0], "to find the server, nobody is asked"
    # Registering asks the server once whether it would take messages; the scheduler's thread posts, and nothing else.
    port = int(capture.url.rpartition(":")[2])
    of_dask = set(told["of dask"])
    assert set(told["at register"]) <= {*of_dask, port}
    assert set(told["connections"]) <= {*of_dask, port}
    asked_for = {(asked.method, asked.path.partition("?")[0]) for asked in capture.asked}
    assert asked_for == {("GET", "/api/v1/whoami"), ("POST", "/api/v1/telemetry")}
    assert len(capture.bodies) > 1, "both kinds of answers were given"
    assert "closed" in {message.phase for message in capture.messages}, "not always the last: others are retried"
    assert MARK.encode() not in b"".join(capture.bodies), "nor does it come back"


def _holds(file: Path) -> bool:
    return MARK.encode() in file.read_bytes()
