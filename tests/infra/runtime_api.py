"""A function as Lambda runs it: awslambdaric, the real runtime client, in a Python that sees one bundle and no more.

The other end is a Runtime API of our own, as far as one event at a time needs it.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from types import TracebackType
from typing import Any

PYTHON = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
"""Not that of .venv, which sees all of its packages."""
RUNTIME = ("awslambdaric", "simplejson", "snapshot-restore-py")
_API = "/2018-06-01/runtime"
_LIMIT_S = 60


class FunctionError(Exception):
    """What the runtime client told Lambda of a failure: `kind` as in "Runtime.ImportModuleError"."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


@dataclass(frozen=True, slots=True)
class _Told:
    path: str
    body: bytes


def add_runtime(folder: Path) -> Path:
    """Link the runtime client, and what it needs, into an empty folder."""
    for name in RUNTIME:
        for file in distribution(name).files or ():
            if ".." not in file.parts:
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).symlink_to(str(file.locate()))
    return folder


class Function:
    """Starts on entering, with the variables that Lambda sets and `environment`; `handler` is as in the template."""

    def __init__(self, bundle: Path, runtime: Path, handler: str, environment: Mapping[str, str], log: Path) -> None:
        self._bundle, self._handler, self._log = bundle, handler, log
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._told: queue.SimpleQueue[_Told] = queue.SimpleQueue()
        self._http = _server(self._events, self._told)
        self._environment = {
            **environment,
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self._http.server_address[1]}",
            "AWS_LAMBDA_FUNCTION_NAME": "under-test",
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
            "AWS_LAMBDA_LOG_FORMAT": "JSON",
            "AWS_LAMBDA_LOG_LEVEL": "INFO",
            "LAMBDA_TASK_ROOT": str(bundle),
            "PATH": os.defpath,
            "PYTHONPATH": f"{bundle}{os.pathsep}{runtime}",
            "PYTHONNOUSERSITE": "1",
            "TZ": ":UTC",
        }

    def __enter__(self) -> "Function":
        self._serving = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._serving.start()
        command = [PYTHON, "-S", "-m", "awslambdaric", self._handler]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=self._environment, cwd=self._bundle, stdout=log, stderr=subprocess.STDOUT
            )
        self._watching = threading.Thread(target=self._watch)
        self._watching.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._watching.join()
        self._events.put(None)
        self._http.shutdown()
        self._http.server_close()
        self._serving.join()

    def invoke(self, event: Mapping[str, Any]) -> Any:
        """What the handler returned, as Lambda hands it on. Raises FunctionError."""
        self._events.put(event)
        told = self._told.get(timeout=_LIMIT_S)
        if told.path.endswith("/response"):
            return json.loads(told.body)
        if told.path.endswith("/error"):
            error = json.loads(told.body)
            raise FunctionError(error["errorType"], error["errorMessage"])
        raise AssertionError(f"The function {told.path}:\n{self._log.read_text()}")

    def _watch(self) -> None:
        self._told.put(_Told(f"ended with {self._process.wait()}", b""))


def _server(events: queue.SimpleQueue[Any], told: queue.SimpleQueue[_Told]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # one packet an answer: in two, each waits for the other side's delayed acknowledgement

        def do_GET(self) -> None:
            """The next event; waits for it."""
            assert self.path == f"{_API}/invocation/next", self.path
            event = events.get()
            if event is None:
                self.close_connection = True
                return
            headers = {
                "Content-Type": "application/json",
                "Lambda-Runtime-Aws-Request-Id": str(uuid.uuid4()),
                "Lambda-Runtime-Deadline-Ms": str(1 << 50),
                "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-west-1:000000000000:function:under-test",
                "Lambda-Runtime-Trace-Id": "Root=1-00000000-000000000000000000000000;Sampled=0",
            }
            self._answer(200, json.dumps(event).encode(), headers)

        def do_POST(self) -> None:
            """What became of it, or of the function's start."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(202, b"", {})
            told.put(_Told(self.path, body))

        def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)
