"""The machine that this process runs on: what its price depends on. To be called in a thread: it may take a second."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

DEADLINE_S = 1.0
"""For all questions to the metadata service together."""
MAX_BODY = 1024
MAX_GPUS = 64
SYSTEM = Path("/sys")

_ENDPOINT = "http://169.254.169.254"
_SIGNS = (("class/dmi/id/sys_vendor", "amazon ec2"), ("class/dmi/id/board_asset_tag", "i-"), ("hypervisor/uuid", "ec2"))
"""Files that begin so on EC2: the first two on Nitro, the last on Xen."""
_TOKEN = re.compile(r"[!-~]{1,512}")
_ANSWERS = {
    "instance_type": ("instance-type", re.compile(r"[a-z][a-z0-9-]{1,20}\.[a-z0-9-]{1,20}")),
    "region": ("placement/region", re.compile(r"[a-z]{2,8}(-[a-z]{2,12}){1,3}-\d{1,2}")),
    "zone": ("placement/availability-zone", re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,12}){2,8}")),
    "lifecycle": ("instance-life-cycle", re.compile(r"on-demand|spot|scheduled|capacity-block")),
}
"""What is asked for, and what an answer looks like: whatever else may answer at that address, it is no EC2."""


def read_hardware(environment: Mapping[str, str] | None = None, system: Path = SYSTEM) -> dict[str, Any]:
    """Fields of `wire.Hardware`. Never raises: what cannot be read is 0 or empty."""
    environment = os.environ if environment is None else environment
    cores = memory_bytes = 0
    gpus: list[str] = []
    found: dict[str, str] = {}
    with suppress(Exception):
        cores = psutil.cpu_count() or 0
        memory_bytes = psutil.virtual_memory().total
    with suppress(Exception):
        gpus = _gpus()
    with suppress(Exception):
        if endpoint := _endpoint(environment, system):
            found = _ask(endpoint)
    return {
        "cores": cores,
        "memory_bytes": memory_bytes,
        "gpus": gpus,
        "provider": "aws" if found else "",
        **dict.fromkeys(_ANSWERS, ""),
        **found,
    }


def _gpus() -> list[str]:
    """Names of the GPUs, where Dask has found any: we start no library of our own for that."""
    nvml: Any = sys.modules.get("distributed.diagnostics.nvml")
    if nvml is None or not nvml.is_initialized():
        return []
    n_gpus = min(nvml.pynvml.nvmlDeviceGetCount(), MAX_GPUS)
    return [str(nvml._get_name(nvml.pynvml.nvmlDeviceGetHandleByIndex(n)) or "") for n in range(n_gpus)]


def _endpoint(environment: Mapping[str, str], system: Path) -> str | None:
    """Where EC2's metadata service is; None if this is no EC2 by all that shows, or nobody is to ask."""
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return None
    if told := environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT"):
        return told
    return _ENDPOINT if any(_begins(system / file, start) for file, start in _SIGNS) else None


def _begins(file: Path, start: str) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(64).decode("ascii", "replace").lower().startswith(start)
    except OSError:  # not on every machine, and not for every user
        return False


def _ask(endpoint: str) -> dict[str, str]:
    """What EC2's metadata service tells, by a session token (IMDSv2); empty if it is not EC2's that answers.

    One try, one connection: no redirects, no proxies. Without an instance type, nothing else counts.
    """
    parts = urlsplit(endpoint)
    if parts.scheme != "http" or not parts.hostname:
        return {}
    found: dict[str, str] = {}
    with suppress(OSError, HTTPException), _until_deadline(parts.hostname, parts.port or 80) as connection:
        root = f"{parts.path.rstrip('/')}/latest"
        token = _body(connection, "PUT", f"{root}/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}, _TOKEN)
        for name, (path, allowed) in _ANSWERS.items() if token else ():
            headers = {"X-aws-ec2-metadata-token": token}
            if answer := _body(connection, "GET", f"{root}/meta-data/{path}", headers, allowed):
                found[name] = answer
            elif not found:
                break
    return found


@contextmanager
def _until_deadline(host: str, port: int) -> Generator[HTTPConnection]:
    """A connection that ends at the deadline, however slowly the other side goes on sending."""
    due_s = time.monotonic() + DEADLINE_S
    connection = HTTPConnection(host, port, timeout=DEADLINE_S)
    connection.connect()
    ending = threading.Timer(due_s - time.monotonic(), _end, [connection.sock])
    ending.daemon = True
    ending.start()
    try:
        yield connection
    finally:
        ending.cancel()
        connection.close()


def _end(open_socket: socket.socket) -> None:
    with suppress(OSError):
        open_socket.shutdown(socket.SHUT_RDWR)


def _body(connection: HTTPConnection, method: str, path: str, headers: dict[str, str], allowed: re.Pattern[str]) -> str:
    """The body of a 200 if it looks like what was asked for, else empty."""
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    text = response.read(MAX_BODY).decode("ascii", "replace")
    if response.read(1):  # longer than any answer: nothing more can be read from this connection
        raise HTTPException("too long")
    return text if response.status == 200 and allowed.fullmatch(text) else ""
