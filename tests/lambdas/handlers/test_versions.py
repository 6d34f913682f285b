"""Every response says which release answers, whoever made it."""

from collections.abc import Callable
from typing import Any

import pytest

import daskscope
from daskscope import wire
from daskscope.testing import message
from daskscope_lambdas.handlers import api, ingest
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.handlers.conftest import event


def check(found: dict[str, Any], status: int) -> None:
    assert found["statusCode"] == status
    assert found["headers"]["Daskscope-Version"] == daskscope.__version__
    assert found["headers"]["Daskscope-Api"] == "1"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/whoami", 200), ("/api/v1/acme/clusters", 200), ("/api/v1/other/clusters", 404),
        ("/api/v1/acme/clusters?limit=x", 400), ("/nowhere", 404), ("/healthz", 200), ("/static/style.css", 200),
        ("/login", 200), ("/", 401),
    ],
)  # fmt: skip
def test_of_what_is_read(get: Callable[..., dict[str, Any]], token: Callable[..., str], path: str, status: int) -> None:
    check(get(path, token("read")), status)
    check(api.handler(event("OPTIONS", path), None), 404)


def test_of_what_is_sent(world: LocalAdapters, post: Callable[..., dict[str, Any]]) -> None:
    check(post(message()), 200)
    check(ingest.handler(event("POST", wire.PATH), None), 401)
