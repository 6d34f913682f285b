"""Who uses the command line has said which account is theirs."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.plugin.api_server import ApiServer


@pytest.fixture
def serve(serve: Callable[..., ApiServer]) -> Callable[..., ApiServer]:
    return partial(serve, account="acme")


@pytest.fixture
def server(serve: Callable[..., ApiServer]) -> ApiServer:
    return serve()
