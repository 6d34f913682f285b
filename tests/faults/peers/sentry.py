"""Sentry's SDK: each event is sent once, by a thread of its own."""

# pyright: reportMissingImports=false
# A fresh environment has no peers: `make faults` brings them.

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable
from unittest import mock

from tests.faults.peers.trial import Trial
from tests.faults.proxy import Proxy

PACKAGE = "sentry-sdk"
FLUSH_S = 60.0


def send(trial: Trial, proxy: Proxy, timeout_s: float) -> None:
    """Its own settings but for the address. Nothing in it takes longer than the ten seconds between two events but a
    server that says nothing, which here says nothing for `timeout_s` and not for 30 seconds; so no clock is needed:
    the next event comes when what the last one started is over."""
    import sentry_sdk
    from sentry_sdk.transport import HttpTransport

    with mock.patch.object(HttpTransport, "TIMEOUT", timeout_s):
        sentry_sdk.init(dsn=f"http://public@127.0.0.1:{proxy.port}/1")
        for number in range(trial.n):
            if number == trial.down:
                proxy.listen()
            sentry_sdk.capture_message(f"event {number}")
            sentry_sdk.flush(FLUSH_S)
        sentry_sdk.get_client().close(FLUSH_S)


def received(posts: Iterable[tuple[str, dict[str, str], bytes]]) -> Counter[str]:
    """How often each event came, by the id that the SDK gave it and its text."""
    found = Counter[str]()
    for path, headers, body in posts:
        assert path.endswith("/envelope/"), path
        plain = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        lines = iter(plain.split(b"\n"))
        next(lines)
        for head in lines:
            if not head:
                continue
            item, payload = json.loads(head), next(lines)
            if item.get("type") == "event":
                event = json.loads(payload)
                text: str = event.get("message") or event["logentry"]["message"]
                found[text] += 1
    return found
