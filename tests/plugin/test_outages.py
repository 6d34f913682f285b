"""Outages at random on a simulated clock: what a sender says that was lost is what was lost, to the last line."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from daskscope import buffer, wire
from daskscope.compression import Encoding, decompress
from daskscope.contents import STAGES, told_again, told_once
from daskscope.outcome import Outcome, judge
from daskscope.sender import Sender
from tests.plugin.memory_shelf import MemoryShelf
from tests.plugin.rig import REPLY
from tests.plugin.sending import Clock
from tests.plugin.stories import everything, rows

ONCE = ("exceptions", "deaths", "events", "log-lines", "tasks", "profiles")
AGAIN = STAGES[2]
MESSAGES = ("buffer-full", "refused", "too-large")
INTERVAL_S = 10.0


class Weather:
    """A server that is away, slow to take anything, picky or there, for minutes each."""

    def __init__(self, chance: random.Random, clock: Clock, *, is_picky: bool) -> None:
        self._chance, self._clock, self._is_picky = chance, clock, is_picky
        self._until_s = 0.0
        self._answer = (200, None)
        self._most_bytes = 1 << 20
        self.is_fair = False
        self.kept: list[wire.Message] = []

    def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
        status, retry_after = self._now()
        if len(body) > self._most_bytes:
            status = 413
        found = judge(status, retry_after, REPLY, encoding)
        if found.verdict == "kept":
            self.kept.append(wire.decode(decompress(body, encoding)))
        return found

    def close(self) -> None:
        """Nothing is held open."""

    def _now(self) -> tuple[int, str | None]:
        if self.is_fair:
            self._most_bytes = 1 << 20
            return 200, None
        if self._clock.now_s >= self._until_s:
            self._until_s = self._clock.now_s + self._chance.choice([1.0, 30.0, 300.0, 1_200.0])
            away: list[tuple[int, str | None]] = [(200, None), (200, None), (503, None), (503, "120"), (429, None)]
            away += [(500, None), (401, None), *([(422, None)] * self._is_picky)]
            self._answer = self._chance.choice(away)
            self._most_bytes = self._chance.choice([700, 1_500, 1 << 20]) if self._is_picky else 1 << 20
        return self._answer


class Story:
    """A scheduler's day through such a server."""

    def __init__(self, seed: int, shelf: MemoryShelf | None = None) -> None:
        chance = random.Random(seed)
        self.clock = Clock()
        self.weather = Weather(chance, self.clock, is_picky=seed % 2 == 1)
        self.sender = Sender(self.weather, lambda _: None, shelf=shelf, monotonic=self.clock, jitter=chance.random)
        self.told: list[wire.Message] = []
        n = chance.randrange(20, 120)
        for seq in range(n):
            self._tell(everything(seq, **_less(chance)))
        self.weather.is_fair = True
        self._tell(everything(n, phase="closed"))
        self._pass(1e6)

    def _tell(self, message: wire.Message) -> None:
        message.lost = dict(self.sender.lost)
        self.told.append(message)
        self.sender.put(message)
        self.sender._step()
        self._pass(INTERVAL_S)

    def _pass(self, duration_s: float) -> None:
        until_s = self.clock.now_s + duration_s
        while (pause_s := self.sender._pause_s()) is not None and self.clock.now_s + pause_s <= until_s:
            self.clock.now_s += pause_s
            self.sender._step()
        self.clock.now_s = until_s

    def lost(self) -> Counter[str]:
        """What was told and did not arrive."""
        return _all_of(self.told) - _all_of(self.weather.kept)


def _less(chance: random.Random) -> dict[str, Any]:
    empty: dict[str, Any] = {"profiles": [], "tasks": wire.Tasks(), "logs": wire.Logs(), "groups": wire.Groups()}
    empty |= {"spans": [], "events": [], "exceptions": []}
    return {name: empty[name] for name in chance.sample(sorted(empty), chance.randrange(len(empty)))}


def _all_of(messages: list[wire.Message]) -> Counter[str]:
    found: Counter[str] = Counter()
    for message in messages:
        found += told_once(message) + told_again(message)
        found["messages"] += 0 if message.part else 1 + message.merged
    return found


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer, "MAX_MESSAGES", 20)
    monkeypatch.setattr(buffer, "MAX_BYTES", 2_500)


def look_at(seeds: range) -> Counter[str]:
    """What was lost by these stories together."""
    reasons: Counter[str] = Counter()
    for seed in seeds:
        story = Story(seed)
        said, real = story.sender.lost, story.lost()
        assert not story.sender._buffer, seed
        assert sum(said[reason] for reason in MESSAGES) - said["parts"] == real["messages"], (seed, said, real)
        assert [said[kind] - real[kind] for kind in ONCE] == [0] * len(ONCE), (seed, said, real)
        if not real["messages"] and not said["parts"]:
            assert [said[kind] - real[kind] for kind in AGAIN] == [0] * len(AGAIN), (seed, said, real)
        assert any(message.phase == "closed" for message in story.weather.kept), seed
        if not said.keys() & {"refused", "too-large"}:
            assert any(message.identity for message in story.weather.kept), seed
        reasons += said
    return reasons


def test_what_is_said_to_be_lost_is_what_is_lost() -> None:
    found = look_at(range(16))
    assert {*ONCE, *AGAIN, *MESSAGES, "parts"} <= set(found), "of each kind something"


@pytest.mark.long
def test_what_is_said_to_be_lost_is_what_is_lost_two_hundred_times() -> None:
    look_at(range(200))


@pytest.mark.parametrize("seed", range(0, 8, 2))
def test_with_a_shelf_nothing_is_lost_and_nothing_is_told_differently(seed: int) -> None:
    shelf = MemoryShelf()
    story = Story(seed, shelf)
    assert story.sender.lost == {}
    assert rows(story.weather.kept) == rows(story.told), "none is merged either"
    assert shelf.files == {}
