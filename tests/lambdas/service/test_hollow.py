"""What would become too much is told from its bytes, and nothing that a plugin says is taken for it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from daskscope import wire
from daskscope.compression import MAX_MESSAGE_BYTES, compress
from daskscope.errors import TooLarge
from daskscope.testing import logs, message
from daskscope_lambdas.service.check import MAX_ENTRIES, check
from daskscope_lambdas.service.hollow import MAX_ITEMS, MAX_LISTS, MAX_OBJECTS, refuse_hollow
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.wiring import LocalAdapters

HEAD = wire.encode(message(seq=1))[:-1]


def full(before: bytes, piece: bytes, after: bytes) -> bytes:
    """As many pieces as 16 MiB hold."""
    room = MAX_MESSAGE_BYTES - len(HEAD) - len(before) - len(after) - 2
    return HEAD + b"," + before + b",".join([piece] * (room // (len(piece) + 1))) + after + b"}"


HOLLOW: dict[str, Callable[[], bytes]] = {
    "objects": lambda: full(b'"hardware":[', b"{}", b"]"),
    "unknown": lambda: full(b'"later":[', b"{}", b"]"),
    "lists": lambda: full(b'"groups":{"dependencies":[', b"[]", b"]}"),
    "items": lambda: full(b'"groups":{"no":[', b"1", b"]}"),
    "maps": lambda: full(b'"environments":[', b'{"packages":{"a":"b"}}', b"]"),
    "between texts": lambda: full(b'"spans":[', b'{"id":"{\\"\\\\"}', b"]"),
    "behind a text": lambda: HEAD + b',"reason":"\\\\"' + full(b'"hardware":[', b"{}", b"]")[len(HEAD) :],
}  # fmt: skip


@pytest.mark.parametrize("name", HOLLOW)
def test_a_hollow_body_is_refused_before_it_is_decoded(
    name: str, adapters: LocalAdapters, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, encoding = compress(HOLLOW[name]()[:MAX_MESSAGE_BYTES])
    assert len(body) < 100_000
    monkeypatch.setattr(wire, "decode", None)
    ingest = Ingest.over(adapters)
    with pytest.raises(TooLarge, match="send less"):
        ingest.take("acme", body, encoding)


ODD = '{[,"\\' * 2
TEXTS: dict[str, Callable[[], dict[str, Any]]] = {
    "log lines": lambda: {"logs": logs(*({"no": no, "text": ODD * 700 + str(no)} for no in range(1_000)))},
    "code": lambda: {"codes": [wire.Code(hash=f"{no:032x}", text=f"{{'a': [{no}, {{}}], \"b\": ','}}\n" * 4_000)
                       for no in range(100)]},
    "one text": lambda: {"reason": "," * 5_000_000},
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts_may_hold_whatever_they_like(name: str) -> None:
    plain = wire.encode(message(**TEXTS[name]()))
    assert len(plain) <= MAX_MESSAGE_BYTES
    assert plain.count(b"{") > MAX_OBJECTS or plain.count(b",") > MAX_ITEMS
    refuse_hollow(plain)


def test_whatever_the_entries_allow_passes() -> None:
    n = MAX_ENTRIES // 3
    said: dict[str, Any] = {
        "dependencies": {"groups": {"no": list(range(n)), "dependencies": [[]] * n, "types": [[]] * n}},
        "objects": {"hardware": [{}] * (MAX_ENTRIES - 2)},
    }
    for each in said.values():
        refuse_hollow(json.dumps(each).encode())
    check(message(hardware=[wire.Hardware()] * (MAX_ENTRIES - 2)))
    assert 2 * n < MAX_LISTS
