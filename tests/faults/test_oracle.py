"""The oracle sees what is lost, doubled and told wrongly: else no row could fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from daskscope import buffer, parcel, testing
from daskscope.merging import joined
from daskscope.parts import halves
from daskscope.slices import Plain
from tests.faults.facts import Fact, told
from tests.faults.line import PACE_S
from tests.faults.oracle import Verdict
from tests.faults.proxy import PASS, status
from tests.faults.rig import Rig, rig, story
from tests.faults.server import Server
from tests.faults.telling import OF_ONE, content

N = 6
N_ROWS = sum(OF_ONE.values()) + 2 + 5
"""Of the first message: itself, what it tells once, two workers, and five things that only it tells."""
N_WAITING = 20
SMALL_BYTES = 1_100


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
    assert found.unkept == N_ROWS, "the message, and each row that no later one tells"
    assert found.missing == OF_ONE
    assert not found.is_clean


TOLD = {"refused": 1, **{kind: n for kind, n in OF_ONE.items() if kind != "messages"}}


@pytest.mark.parametrize(("told", "untold"), [({}, sum(OF_ONE.values())), (TOLD, 0), (TOLD | {"refused": 2}, 1)])
def test_a_loss_is_silent_unless_told_to_the_last_one(told: dict[str, int], untold: int) -> None:
    def spoil(it: Rig) -> None:
        def drop() -> None:
            it.line.sender._inbox.pop()
            it.line.sender.lost.update(told)

        # Right after the third was put, and before the sender has looked.
        it.line.at(it.clock.now() + 20, drop)

    found = _judged(spoil)
    assert (found.unkept, found.untold) == (0, untold)


@pytest.mark.parametrize("table", ["samples", "events", "groups", "deaths"])
def test_a_row_that_a_query_sees_twice_is_doubled(table: str) -> None:
    rows = Server.rows

    def twice(self: Server, name: str) -> list[dict[str, Any]]:
        return rows(self, name) * (2 if name == table else 1)

    with mock.patch.object(Server, "rows", twice):
        n = len(_rows_of_story(table))
        assert _judged(lambda it: None).doubled == n


def _rows_of_story(table: str) -> list[Fact]:
    """Of a whole story, repeats dropped."""
    messages = [testing.message(seq=seq, **content(seq, testing.START_MS)) for seq in range(N)]
    return list({fact.key: fact for fact in told(messages) if fact.key[0] == table}.values())


KINDS = ("identity", "members", "groups", "computations", "codes", "spans", "metrics", "tasks", "exceptions", "deaths",
         "events", "logs", "profiles")  # fmt: skip


def _some(*short: str) -> list[Any]:
    """These always, all others at length. Who the cluster is stands in one part alone, and is not divided."""
    rest = [kind for kind in KINDS[1:] if kind not in short]
    return [*short, *(pytest.param(kind, marks=pytest.mark.long) for kind in rest)]


@pytest.mark.parametrize("kind", _some("identity", "members", "codes", "logs"))
def test_a_merge_that_loses_anything_is_seen(kind: str) -> None:
    def forgetful(earlier: Plain, later: Plain) -> Plain | None:
        both = joined(earlier, later)
        return both and without(both, kind)

    with mock.patch.object(buffer, "joined", forgetful):
        found = _after_an_outage()
    assert found.merged
    assert not found.is_clean, found


def test_a_merge_that_loses_nothing_is_clean() -> None:
    found = _after_an_outage()
    assert found.merged
    assert found.is_whole, found


@pytest.mark.parametrize("kind", _some("workers", "groups", "profiles", "tasks"))
def test_a_division_that_loses_anything_is_seen(kind: str) -> None:
    def forgetful(plain: Plain) -> tuple[Plain, Plain] | None:
        pair = halves(plain)
        return pair and (without(pair[0], kind), without(pair[1], kind))

    with mock.patch.object(parcel, "halves", forgetful):
        found = _in_parts()
    assert not found.is_clean, found


def test_a_division_that_loses_nothing_is_clean() -> None:
    assert _in_parts().is_whole


@pytest.mark.parametrize(("table", "column"), [("groups", "n_tasks"), ("members", "n_threads"), ("logs", "text"),
                                               ("workers", "memory_mib"), ("samples", "n_threads")])  # fmt: skip
def test_a_row_that_says_something_else_is_seen(table: str, column: str) -> None:
    rows = Server.rows

    def altered(self: Server, name: str) -> list[dict[str, Any]]:
        found = rows(self, name)
        return [row | {column: None} for row in found] if name == table else found

    with mock.patch.object(Server, "rows", altered):
        found = _judged(lambda it: None)
    assert found.altered
    assert not found.is_clean


def _after_an_outage() -> Verdict:
    """Twenty messages wait in a room for eight; nothing but what the last of them tells comes again."""
    with mock.patch.object(buffer, "MAX_MESSAGES", 8), rig() as it:
        it.proxy.refuse()
        it.line.put_every(story(it.line, last=2 * N_WAITING - 1), N_WAITING)
        it.line.at(it.clock.now() + N_WAITING * PACE_S, it.proxy.listen)
        it.line.run()
        it.server.settle()
        return it.oracle.judge(it.server)


def _in_parts() -> Verdict:
    """Each message is too large for the server at first."""
    with rig() as it:
        it.proxy.choose = lambda request: status(413) if len(request.body) > SMALL_BYTES else PASS
        it.line.put_every(story(it.line, last=N - 1), N)
        it.line.run()
        it.server.settle()
        return it.oracle.judge(it.server)


def without(plain: Plain, kind: str) -> Plain:
    also = ("environments", "hardware") if kind == "members" else ()
    return {name: value for name, value in plain.items() if name not in (kind, *also)}
