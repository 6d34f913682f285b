"""The oracle sees what is lost, doubled and told wrongly: else no row could fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from tests.faults.oracle import Verdict
from tests.faults.rig import Rig, rig, story
from tests.faults.server import Server

N = 6


def _judged(spoil: Callable[[Rig], object]) -> Verdict:
    with rig() as it:
        it.line.put_every(story(it.line, last=N - 1), N)
        spoil(it)
        it.line.run()
        it.server.settle()
        return it.oracle.judge(it.server)


def test_what_all_went_well_with_is_whole() -> None:
    found = _judged(lambda it: None)
    assert found.is_whole
    assert (found.numbered, found.merged, found.stored_again) == (N, 0, 0)


def test_what_was_acknowledged_and_is_gone_is_lost() -> None:
    def spoil(it: Rig) -> None:
        feed = it.server.world.feed
        it.line.at(it.clock.now() + 25, lambda: feed.delete([feed.receive(1, 1.0)[0].receipt]))

    found = _judged(spoil)
    assert found.unkept == 3, "the message, its event and its line"
    assert found.missing == {"messages": 1, "events": 1, "log-lines": 1}
    assert not found.is_clean


@pytest.mark.parametrize(("told", "untold"), [({}, 3), ({"refused": 1, "events": 1, "log-lines": 1}, 0),
                                              ({"refused": 2, "events": 1, "log-lines": 1}, 1)])  # fmt: skip
def test_a_loss_is_silent_unless_told_to_the_last_one(told: dict[str, int], untold: int) -> None:
    def spoil(it: Rig) -> None:
        def drop() -> None:
            it.line.sender._inbox.pop()
            it.line.sender.lost.update(told)

        # Right after the third was put, and before the sender has looked.
        it.line.at(it.clock.now() + 20, drop)

    found = _judged(spoil)
    assert (found.unkept, found.untold) == (0, untold)


@pytest.mark.parametrize("table", ["samples", "events"])
def test_a_row_that_a_query_sees_twice_is_doubled(table: str) -> None:
    rows = Server.rows

    def twice(self: Server, name: str) -> list[dict[str, Any]]:
        return rows(self, name) * (2 if name == table else 1)

    with mock.patch.object(Server, "rows", twice):
        assert _judged(lambda it: None).doubled == N
