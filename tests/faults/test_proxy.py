"""The proxy does what it is told: else a row would hold because nothing was wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from daskscope import testing, wire
from daskscope.compression import compress
from daskscope.transport import Http
from daskscope_lambdas.testing import FakeClock
from tests.faults.proxy import Fault, Proxy, status
from tests.faults.server import Server, serving

BODY, ENCODING = compress(wire.encode(testing.message()), ())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(FakeClock()) as running:
        yield running


@pytest.mark.parametrize(
    ("fault", "verdict", "reason", "stored"),
    [
        (Fault("pass"), "kept", "", 1),
        (status(503), "again", "HTTP 503", 0),
        (status(404), "refused", "HTTP 404", 0),
        (Fault("silence"), "again", "Timeout", 0),
        (Fault("drip"), "again", "Timeout", 0),
        (Fault("reset"), "again", "ReadError", 0),
        (Fault("half-close"), "again", "RemoteProtocolError", 0),
        (Fault("garbage"), "again", "RemoteProtocolError", 0),
        (Fault("lose-answer"), "again", "ReadError", 1),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else None,
)
def test_a_fault_is_what_it_is_called(
    server: Server, monkeypatch: pytest.MonkeyPatch, fault: Fault, verdict: str, reason: str, stored: int
) -> None:
    monkeypatch.setattr("daskscope.transport.DEADLINE_S", 0.5 if "Timeout" in reason else 10.0)
    proxy = Proxy(server.port)
    proxy.choose = lambda _: fault
    server.world.feed.delete([each.receipt for each in server.world.feed.receive(100, 1.0)])
    with proxy.running():
        transport = Http(proxy.url, server.token)
        outcome = transport.deliver("name", BODY, ENCODING)
        transport.close()
        assert (outcome.verdict, reason in outcome.reason) == (verdict, True), outcome.reason
        (seen,) = proxy.seen
        assert (seen.fault, seen.body) == (fault, BODY)
    assert len(server.world.feed.receive(100, 1.0)) == stored


def test_a_door_that_is_closed_refuses_and_opens_again(server: Server) -> None:
    proxy = Proxy(server.port)
    with proxy.running():
        transport = Http(proxy.url, server.token)
        assert transport.deliver("name", BODY, ENCODING).verdict == "kept"
        proxy.refuse()
        for _ in range(2):  # the connection that was open, and a new one
            assert "Error" in transport.deliver("name", BODY, ENCODING).reason
        assert len(proxy.seen) == 1
        proxy.listen()
        assert transport.deliver("name", BODY, ENCODING).verdict == "kept"
        transport.close()
