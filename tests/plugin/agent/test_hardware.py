"""The machine: what this one tells, and a stand-in for EC2's metadata service in its good and its bad days."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from daskscope import wire
from daskscope.agent import hardware
from daskscope.agent.hardware import read_hardware

TOKEN = "AQAEAHxL-stand-in=="
ANSWERS = {
    "/latest/meta-data/instance-type": "m7i.2xlarge",
    "/latest/meta-data/placement/region": "us-east-1",
    "/latest/meta-data/placement/availability-zone": "us-east-1c",
    "/latest/meta-data/instance-life-cycle": "spot",
}
NOTHING = {"provider": "", "instance_type": "", "region": "", "zone": "", "lifecycle": ""}


class Metadata(http.server.BaseHTTPRequestHandler):
    """EC2's metadata service, version 2: a token for a PUT, answers for the token."""

    protocol_version = "HTTP/1.1"

    @property
    def service(self) -> Service:
        return cast("Service", self.server)

    def do_PUT(self) -> None:
        good = self.path == "/latest/api/token" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        self._say(*((200, TOKEN) if good else (400, "")))

    def do_GET(self) -> None:
        if self.headers["X-aws-ec2-metadata-token"] != TOKEN:
            self._say(401, "Unauthorized")
        else:
            answer = self.service.answers.get(self.path)
            self._say(*((404, "Not Found") if answer is None else (200, answer)))

    def _say(self, status: int, text: str) -> None:
        self.service.asked.append(f"{self.command} {self.path}")
        if self.service.instead is not None:
            self.service.instead(self)
            return
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


class Service(http.server.ThreadingHTTPServer):
    def __init__(self, answers: dict[str, str], instead: Callable[[Metadata], None] | None) -> None:
        super().__init__(("127.0.0.1", 0), Metadata)
        self.answers, self.instead = answers, instead
        self.asked: list[str] = []
        self.ended = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client may hang up."""


@contextlib.contextmanager
def metadata(
    answers: dict[str, str] = ANSWERS, instead: Callable[[Metadata], None] | None = None
) -> Generator[tuple[Service, dict[str, str]]]:
    with Service(answers, instead) as service:
        serving = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield service, {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{service.server_port}/"}
        finally:
            service.ended.set()
            service.shutdown()
            serving.join()


def cloud(told: dict[str, Any]) -> dict[str, Any]:
    return {name: told[name] for name in NOTHING}


def test_this_machine(tmp_path: Path) -> None:
    told = read_hardware({}, tmp_path)
    assert (told["cores"], told["memory_bytes"]) == (psutil.cpu_count(), psutil.virtual_memory().total)
    assert told["gpus"] == []
    assert cloud(told) == NOTHING
    assert wire.Hardware(**told).cores > 0, "the fields are those of the message"


def test_what_ec2_tells(tmp_path: Path) -> None:
    with metadata() as (service, environment):
        told = read_hardware(environment, tmp_path)
    assert cloud(told) == {
        "provider": "aws", "instance_type": "m7i.2xlarge", "region": "us-east-1", "zone": "us-east-1c",
        "lifecycle": "spot",
    }  # fmt: skip
    assert service.asked == ["PUT /latest/api/token", *(f"GET {path}" for path in ANSWERS)], "each once, after a token"


@pytest.mark.parametrize("missing", ["placement/region", "placement/availability-zone", "instance-life-cycle"])
def test_what_ec2_does_not_tell_is_empty_and_the_rest_is_there(tmp_path: Path, missing: str) -> None:
    answers = {path: answer for path, answer in ANSWERS.items() if not path.endswith(missing)}
    with metadata(answers) as (_, environment):
        told = cloud(read_hardware(environment, tmp_path))
    assert told["instance_type"] == "m7i.2xlarge"
    assert len([name for name in told if not told[name]]) == 1


GOOD = [
    ("instance-type", "u-6tb1.metal"),
    ("instance-type", "c7gn.metal"),
    ("instance-type", "mac2-m2pro.metal"),
    ("placement/region", "us-gov-west-1"),
    ("placement/region", "us-isob-east-1"),
    ("placement/availability-zone", "us-west-2-lax-1a"),
    ("placement/availability-zone", "us-east-1-wl1-bos-wlz-1"),
    ("instance-life-cycle", "capacity-block"),
]


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_names_that_aws_has(tmp_path: Path, name: str, value: str) -> None:
    with metadata({**ANSWERS, f"/latest/meta-data/{name}": value}) as (_, environment):
        assert value in cloud(read_hardware(environment, tmp_path)).values()


def _status(status: int, **headers: str) -> Callable[[Metadata], None]:
    def answer(request: Metadata) -> None:
        request.send_response(status)
        for name, value in {**headers, "Content-Length": "0"}.items():
            request.send_header(name, value)
        request.end_headers()

    return answer


def _text(text: bytes) -> Callable[[Metadata], None]:
    def answer(request: Metadata) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)

    return answer


def _hang_up(request: Metadata) -> None:
    request.close_connection = True


def _no_http(request: Metadata) -> None:
    request.wfile.write(b"\x16\x03\x01\x02" * 100)


def _silent(request: Metadata) -> None:
    request.service.ended.wait()


def _drip(request: Metadata) -> None:
    """A byte now and then, for ever: no single wait is long."""
    request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not request.service.ended.wait(0.01):
        request.wfile.write(b"x")


BAD: dict[str, Callable[[Metadata], None]] = {
    "401": _status(401),
    "404": _status(404),
    "500": _status(500),
    "redirect": _status(302, Location="/latest/meta-data/instance-type"),
    "html": _text(b"<html>Log in to the guest network</html>"),
    "word": _text(b"welcome"),
    "bytes": _text(bytes(range(256))),
    "empty": _text(b""),
    "huge": _text(b"m5.large" * 1_000_000),
    "hang up": _hang_up,
    "no http": _no_http,
    "silent": _silent,
    "drip": _drip,
}


@pytest.mark.parametrize("day", BAD)
def test_what_is_no_ec2_tells_nothing_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, day: str) -> None:
    monkeypatch.setattr(hardware, "DEADLINE_S", 0.3)
    with metadata(instead=BAD[day]) as (service, environment):
        told = read_hardware(environment, tmp_path)
    assert cloud(told) == NOTHING
    assert told["cores"] > 0
    asked = ["PUT /latest/api/token"] + ["GET /latest/meta-data/instance-type"] * (day == "word")  # may be a token
    assert service.asked == asked, "one try, and no way is followed"


@pytest.mark.parametrize("value", ["Sign in here", "m5", "../../x.large", "M5.LARGE", "m5.large\n<script>", "a" * 5000])
def test_an_instance_type_that_is_none_is_not_told_nor_the_rest(tmp_path: Path, value: str) -> None:
    with metadata({**ANSWERS, "/latest/meta-data/instance-type": value}) as (_, environment):
        assert cloud(read_hardware(environment, tmp_path)) == NOTHING


@pytest.mark.parametrize("endpoint", ["https://127.0.0.1:1", "file:///etc/passwd", "nonsense", "http://[", "http://:x"])
def test_an_endpoint_that_is_none(tmp_path: Path, endpoint: str) -> None:
    assert cloud(read_hardware({"AWS_EC2_METADATA_SERVICE_ENDPOINT": endpoint}, tmp_path)) == NOTHING


def test_nobody_is_asked_where_that_is_forbidden(tmp_path: Path) -> None:
    with metadata() as (service, environment):
        told = read_hardware({**environment, "AWS_EC2_METADATA_DISABLED": "True"}, tmp_path)
    assert (cloud(told), service.asked) == (NOTHING, [])


SIGNS = [
    ("class/dmi/id/sys_vendor", "Amazon EC2\n", True),
    ("class/dmi/id/board_asset_tag", "i-0123456789abcdef0\n", True),
    ("hypervisor/uuid", "ec2e1916-9099-7caf-fd21-012345abcdef\n", True),
    ("class/dmi/id/sys_vendor", "Dell Inc.\n", False),
    ("hypervisor/uuid", "4c4c4544-0043\n", False),
]


@pytest.mark.parametrize(("file", "text", "is_ec2"), SIGNS)
def test_a_machine_is_only_asked_where_it_is_of_ec2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, is_ec2: bool
) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    with metadata() as (service, environment):
        monkeypatch.setattr(hardware, "_ENDPOINT", environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"])
        told = read_hardware({}, tmp_path)
    assert bool(service.asked) == is_ec2
    assert told["provider"] == ("aws" if is_ec2 else "")


def test_no_proxy_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with metadata() as (proxy, _), metadata() as (service, environment):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
        read_hardware(environment, tmp_path)
        assert service.asked
        assert proxy.asked == []


def test_gpus_are_those_that_dask_has_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["NVIDIA A10G", "NVIDIA A10G"]
    library = SimpleNamespace(nvmlDeviceGetCount=lambda: 2, nvmlDeviceGetHandleByIndex=lambda n: n)
    found = SimpleNamespace(is_initialized=lambda: True, pynvml=library, _get_name=lambda n: names[n])
    monkeypatch.setitem(hardware.sys.modules, "distributed.diagnostics.nvml", found)
    assert read_hardware({}, tmp_path)["gpus"] == names
    found._get_name = None  # whatever its driver does
    assert read_hardware({}, tmp_path)["gpus"] == []
