"""What a switch governs does not leave where it is off, whatever the others are; and what never leaves, never does."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daskscope import wire
from daskscope.options import OPTIONS
from tests.plugin.canaries.planted import LENGTH, MARK, Canaries
from tests.plugin.canaries.stage import AGENTS, ALL, SWITCHES, Seen, perform, preview
from tests.plugin.canaries.workload import RULES

pytestmark = pytest.mark.asyncio

COLUMNS = list(itertools.combinations(range(1, 6), 3))
PAIRS = [frozenset(name for name, rows in zip(sorted(ALL), COLUMNS, strict=False) if row in rows) for row in range(6)]
"""Few combinations, all off among them, in which any two switches are each in turn on and off beside the other."""
EVERY = [frozenset(on) for n in range(len(ALL) + 1) for on in itertools.combinations(sorted(ALL), n)]

TOLD: dict[str, Callable[[wire.Message], object]] = {
    "code": lambda message: message.codes or any(each.code for each in message.computations),
    "exceptions": lambda message: message.exceptions,
    "events": lambda message: message.events,
    "logs": lambda message: message.logs.no,
    "profile": lambda message: message.profiles,
    "tasks": lambda message: message.tasks.start_ms or message.tasks.addresses,
    "hardware": lambda message: message.hardware or any(each.hardware is not None for each in message.members),
}
"""What of a message each switch governs."""


def _id(on: frozenset[str]) -> str:
    return "-".join(sorted(on)) or "none"


async def test_every_switch_is_among_these() -> None:
    governing = {option.key for option in OPTIONS if option.governs} | {"analytics.scrub.secrets"}
    assert governing == {key for key, _, _ in SWITCHES.values()}
    assert TOLD.keys() == ALL - {"scrub"}


async def test_any_two_switches_are_tried_in_all_four_ways() -> None:
    for one, other in itertools.combinations(ALL, 2):
        assert {(one in on, other in on) for on in PAIRS} == set(itertools.product((True, False), repeat=2))


@pytest.mark.parametrize("on", [*PAIRS, ALL], ids=_id)
async def test_what_is_off_does_not_leave_and_what_is_on_does(on: frozenset[str], tmp_path: Path) -> None:
    check(await perform(on, tmp_path), on)


@pytest.mark.long
@pytest.mark.parametrize("on", EVERY, ids=_id)
async def test_every_combination(on: frozenset[str], tmp_path: Path) -> None:
    check(await perform(on, tmp_path), on)


async def test_a_spool_holds_no_more_than_a_server_would_get(tmp_path: Path, data: Path) -> None:
    on = ALL - {"logs", "code", "profile"}
    seen = await perform(on, tmp_path, spool=data)
    check(seen, on)
    for file in data.rglob("*"):
        assert not seen.canaries.found(str(file).encode()), "nor do the names of its files"


async def test_a_preview_shows_no_more_than_would_leave(tmp_path: Path) -> None:
    ons = [frozenset[str](), ALL, *(ALL - {name} for name in sorted(ALL))]
    for on, (canaries, shown) in zip(ons, await preview(ons, tmp_path), strict=True):
        found = canaries.found(shown)
        assert {"group", "prefix", "span"} <= found
        assert not {name for name in found if not RULES[name].may(on)}, sorted(on)
        assert ("text of an exception" in found) == ("exceptions" in on)
        assert ("line around compute" in found) == ("code" in on)
        assert ("event of a client" in found) == ("events" in on)


def check(seen: Seen, on: frozenset[str]) -> None:
    seen.canaries.check(seen.raw, on)
    for name, told in TOLD.items():
        assert any(told(message) for message in seen.messages) == (name in on), name
    _check_agents(seen, on)


def _check_agents(seen: Seen, on: frozenset[str]) -> None:
    """What is off is not even asked for: agents do not say it, and are not there if they have nothing to say."""
    assert seen.has_agent == bool(on & AGENTS)
    kinds = {payload["kind"] for payload in seen.overheard}
    assert ("hello" in kinds) == bool(on & AGENTS)
    assert ("profile" in kinds) == ("profile" in on)
    assert "logs" not in kinds, "the scheduler hears its own process itself"
    assert any("cores" in payload for payload in seen.overheard) == ("hardware" in on)
    assert bool(seen.asked_of_ec2) == ("hardware" in on)
    told: Any = json.dumps(seen.overheard, default=list, ensure_ascii=False)
    leaked = {name for name in seen.canaries.found(told.encode()) if not RULES[name].may(on)}
    assert not leaked


@pytest.mark.parametrize(
    "disguise",
    [
        lambda text: text,
        lambda text: text.upper(),
        lambda text: text[: len(MARK) + 3],
        lambda text: json.dumps({"a": [text]}),
        lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
        lambda text: text.encode("utf-16").decode("latin-1"),
        lambda text: text.encode("utf-16-be").decode("latin-1"),
        lambda text: text.encode().hex(),
        lambda text: text.encode().hex().upper(),
        lambda text: text[::-1],
        *(lambda text, n=n: _base64(b"x" * n + text.encode()) for n in range(4)),
        *(lambda text, n=n: _base64(b"x" * n + text.upper().encode()) for n in range(4)),
        lambda text: _base64(text.encode("utf-16")),
    ],
)
async def test_a_canary_is_found_in_each_form(disguise: Callable[[str], str]) -> None:
    canaries = Canaries(RULES)
    text = canaries["argument"]
    assert len(text) == len(MARK) + LENGTH
    sent = f'{{"texts": ["{disguise(text)}"]}}'.encode("latin-1")
    with pytest.raises(AssertionError, match="these left"):
        canaries.check(sent, frozenset())


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
