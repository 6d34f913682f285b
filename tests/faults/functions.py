"""The functions, in this process, over the adapters of a row; and what AWS or the embedded server hands to them."""

from __future__ import annotations

import base64
import importlib
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from daskscope import wire
from daskscope_lambdas import wiring
from daskscope_lambdas.embedded.function import Function, Handler
from daskscope_lambdas.env import FunctionEnv as Told
from daskscope_lambdas.handlers import house, ingest, write
from daskscope_lambdas.wiring import Adapters


@contextmanager
def functions(world: Adapters, env: Told) -> Generator[None]:
    """Within, they work on `world`, as after a cold start."""
    # By name, for its module must not hide what the others import.
    modules = [house, ingest, write, importlib.import_module("daskscope_lambdas.handlers.compact")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiring, "connect", lambda _env: world)
        patch.setattr(house, "read", lambda: env)
        _forget(modules)
        try:
            yield
        finally:
            _forget(modules)


def _forget(modules: list[Any]) -> None:
    for module in modules:
        for made in vars(module).values():
            if hasattr(made, "cache_clear") and not isinstance(made, type):
                made.cache_clear()


class Here(Function):
    """A function that answers in this process."""

    def __init__(self, handler: Handler) -> None:
        super().__init__("not a process")
        self._handler = handler

    async def __call__(self, event: dict[str, Any]) -> Any:
        return self._handler(event, None)


def posted(body: bytes, encoding: str, token: str) -> dict[str, Any]:
    """As API Gateway hands over a message."""
    headers = {"authorization": f"Bearer {token}", "content-type": wire.CONTENT_TYPE, "content-encoding": encoding}
    return {
        "version": "2.0",
        "rawPath": wire.PATH,
        "headers": headers,
        "requestContext": {"requestId": uuid.uuid4().hex, "http": {"method": "POST", "path": wire.PATH}},
        "body": base64.b64encode(body).decode("ascii"),
        "isBase64Encoded": True,
    }
