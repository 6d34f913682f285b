"""What a payload of an event becomes: JSON, cut where it is long, without running code of the user."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from daskscope import wire
from daskscope.collect import payloads
from daskscope.collect.payloads import MAX_DETAIL
from tests.plugin.collect.told_events import details
from tests.plugin.rig import Cluster, look_at

pytestmark = pytest.mark.asyncio


class Hostile:
    """Its text, its hash and its length are the user's code, and they raise."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__

    def __len__(self) -> int:
        raise RuntimeError("no len")


PAYLOADS: list[tuple[Any, Any]] = [
    ({"keys": {("x", 0)}}, {"keys": [["x", 0]]}),
    ({("x", 0): 1, 7: 2, "a": 3}, {"['x', 0]": 1, "7": 2, "a": 3}),
    ({b"k": b"\x80\x04pickled"}, {"<1 bytes>": "<9 bytes>"}),
    ({"o": Hostile()}, {"o": "<Hostile>"}),
    ({Hostile(): 1}, {"<Hostile>": 1}),
    ({(Hostile(), 1): 1}, {"['<Hostile>', 1]": 1}),
    ({"action": Hostile(), "x": 1}, {"x": 1}),
    ({"worker": Hostile(), "x": 1}, {"x": 1}),
    ({"f": float("nan"), "g": float("inf"), "h": 1.5}, {"f": "nan", "g": "inf", "h": 1.5}),
    ({"n": 10**5000}, {"n": "<an integer of 16610 bits>"}),
    ({"n": 2**63 - 1, "b": True, "z": None}, {"n": 2**63 - 1, "b": True, "z": None}),
    (["a", 1], {"message": ["a", 1]}),
    (Hostile(), {"message": "<Hostile>"}),
    ({"deep": [[[[[[[1]]]]]]]}, {"deep": [[[["..."]]]]}),
    ({"many": list(range(60))}, {"many": [*range(50), "... 10 more"]}),
    ({"many": {str(n): n for n in range(60)}}, {"many": {**{str(n): n for n in range(50)}, "...": "10 more"}}),
]


@pytest.mark.parametrize("n", range(len(PAYLOADS)))
async def test_any_payload_becomes_json_without_running_the_user_s_code(cluster: Cluster, n: int) -> None:
    payload, expected = PAYLOADS[n]
    look = await look_at(cluster.scheduler, events=("mine",))
    cluster.scheduler.log_event("mine", payload)
    assert details(look().events) == [expected]


async def test_a_payload_that_contains_itself_ends(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("mine",))
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    cluster.scheduler.log_event("mine", loop)
    assert "..." in look().events[0].detail


async def test_lone_surrogates_do_not_stop_the_message(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("mine",))
    cluster.scheduler.log_event("mine", {"action": "a\udcff", "x": "\ud800"})
    message = look.watch._message("running", None)
    (event,) = wire.decode(wire.encode(message)).events
    assert (event.action, event.detail) == ("a?", '{"x": "?"}')


def n_items(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return len(inner) + sum(map(n_items, inner))


async def test_a_payload_of_any_size_is_cut_before_it_becomes_json(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    real = json.dumps

    def dumps(value: Any, **options: Any) -> str:
        made.append(value)
        return real(value, **options)

    look = await look_at(cluster.scheduler, events=("mine",))
    nested: Any = 0
    for _ in range(5):
        nested = [nested] * 100
    cluster.scheduler.log_event("mine", {"text": "x" * 10_000_000, "texts": ["y" * 10_000] * 50})
    cluster.scheduler.log_event("mine", {"nested": nested})
    monkeypatch.setattr(payloads.json, "dumps", dumps)
    message = look.watch._message("running", None)
    monkeypatch.undo()
    long, deep = details(message.events)
    assert re.search(r"x\.{3} \(99\d{5} more characters\)\Z", long["text"])
    assert "..." in str(deep)
    assert n_items(made) < 2 * payloads.MAX_ALL_ITEMS
    assert sum(len(str(value)) for value in made) < 10 * MAX_DETAIL


async def test_a_long_event_is_cut_and_says_by_how_much(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, events=("mine",))
    cluster.scheduler.log_event("mine", {"text": "x" * 10_000})
    (detail,) = details(look().events)
    assert isinstance(detail, Mapping)
    cut = re.fullmatch(r"(x+)\.{3} \((\d+) more characters\)", detail["text"])
    assert cut is not None
    kept, n_cut = cut.groups()
    assert len(kept) + int(n_cut) == 10_000
    assert MAX_DETAIL - 10 < len(json.dumps(detail)) <= MAX_DETAIL


@pytest.mark.parametrize(
    "payload",
    [
        {"quotes": '"' * 10_000}, {"n": [list(range(10**15, 10**15 + 50))] * 10}, {"\1" * 500: "\1" * 9_000},
        {f"{n:02}{'k' * 190}": n for n in range(50)},
    ],
)  # fmt: skip
async def test_json_of_a_payload_is_never_longer_and_always_json(payload: object) -> None:
    text = payloads.as_json(payload)
    assert 0 < len(text) <= MAX_DETAIL
    assert "more" in str(json.loads(text))
