"""AWS on this machine: ministack in a process of its own, on a free port.

Functions run in the interpreter that it runs in, with the environment that it has. So that is an empty one, which finds
ministack by its path alone: what a bundle lacks, its function lacks too.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import venv
from pathlib import Path
from types import TracebackType

import httpx

ROOT = Path(__file__).parents[1]
INSTALLED = ROOT / ".venv" / "emulator" / "lib"
PROGRAM = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
sys.path.append(sys.argv.pop())
from ministack.app import main
main()
"""
"""Ends at once when its input does, and what it keeps in functions too: also if the tests were killed."""
REGION = "eu-west-1"
START_S = 60


class Emulator:
    """Starts on entering, ends with all it held on leaving. `log` is its output."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unpacked = folder / "functions"
        self.log = folder / "emulator.log"

    def __enter__(self) -> Emulator:
        packages = next(INSTALLED.glob("python*/site-packages"), INSTALLED)
        assert (packages / "ministack").exists(), "the emulator is not there: run `make test`, which installs it"
        venv.create(self._folder / "python", symlinks=True)
        self._unpacked.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        settings = {
            "GATEWAY_PORT": str(self.port),
            "BIND_HOST": "127.0.0.1",
            "MINISTACK_HOST": "127.0.0.1",
            "MINISTACK_REGION": REGION,
            "IOT_MTLS_ENABLED": "0",
            "LAMBDA_EXECUTOR": "local",
            "TMPDIR": str(self._unpacked),
            "PYTHONNOUSERSITE": "1",
        }
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [self._folder / "python" / "bin" / "python", "-c", PROGRAM, packages],
                env=_clean() | settings,
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        give_up = time.monotonic() + START_S
        while True:
            try:
                if httpx.get(f"{self.url}/_ministack/health", trust_env=False).is_success:
                    return self
            except httpx.TransportError:
                assert self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < give_up, f"not up after {START_S} s:\n{self.log.read_text()}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()
        # Up to 300 MB each, and pytest keeps the folders of three runs.
        shutil.rmtree(self._unpacked, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        """What points boto3, the CDK and daskscope at it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",  # what it signs with
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }


def _clean() -> dict[str, str]:
    """This process's environment without what would lead somewhere else."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
