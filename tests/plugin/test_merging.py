"""Two messages as one tell what both did, but for the earlier one's gauges."""

import json
from functools import reduce
from typing import Any

import pytest
from hypothesis import given

from daskscope import testing, wire
from daskscope.merging import joined
from daskscope.slices import Plain
from tests.plugin.stories import GAUGES, decoded, last_by_key, run
from tests.plugin.test_parts import few, plain_of

ORIGIN = ("seq", "at", "received_at")
"""A merged row says when the later message was made."""


def as_one(messages: list[wire.Message]) -> Plain:
    def join(earlier: Plain, later: Plain) -> Plain:
        both = joined(earlier, later)
        assert both is not None
        return both

    return reduce(join, map(plain_of, messages))


@few
@given(run(4))
def test_a_run_of_messages_as_one_makes_the_rows_that_the_lake_keeps_of_them_all(messages: list[wire.Message]) -> None:
    one = decoded(as_one(messages))
    before, after = last_by_key(messages, *ORIGIN), last_by_key([one], *ORIGIN)
    before["profiles"], after["profiles"] = _without_no(before), _without_no(after)
    assert {name: found for name, found in before.items() if name not in GAUGES and found} == {
        name: found for name, found in after.items() if name not in GAUGES and found
    }


def _without_no(kept: dict[str, list[Any]]) -> list[Any]:
    """Stacks are counted within their message."""
    return sorted(({**row, "no": None} for row in kept.get("profiles", [])), key=repr)


@few
@given(run(4))
def test_of_gauges_the_last_are_kept_and_it_is_said_how_many_messages_are_in_one(messages: list[wire.Message]) -> None:
    one, last = decoded(as_one(messages)), messages[-1]
    assert (one.merged, one.seq, one.made_at_ms) == (3, last.seq, last.made_at_ms)
    assert (one.totals, one.workers, one.lost) == (last.totals, last.workers, last.lost)
    assert one.identity is not None


@few
@given(run(4))
def test_in_whatever_order_neighbours_are_merged_it_comes_to_the_same(messages: list[wire.Message]) -> None:
    first, second = as_one(messages[:2]), as_one(messages[2:])
    both = joined(first, second)
    assert both is not None
    assert last_by_key([decoded(both)]) == last_by_key([decoded(as_one(messages))])


@few
@given(run(3))
def test_one_that_had_arrived_after_all_does_no_harm(messages: list[wire.Message]) -> None:
    one = decoded(as_one(messages))
    kept, twice = last_by_key([one], *ORIGIN), last_by_key([messages[0], one], *ORIGIN)
    for name in set(kept) - GAUGES - {"profiles"}:
        assert kept[name] == twice[name]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"seq": 1}, {"seq": 3}), ({"seq": 1}, {"seq": 1}), ({"seq": 2}, {"seq": 1}),
        ({"seq": 1}, {"seq": 3, "merged": 2}), ({"seq": 1, "part": 1}, {"seq": 2}),
        ({"seq": 1, "halved": 1}, {"seq": 2}),
        ({"seq": 1}, {"seq": 2, "halved": 1}), ({"seq": 1, "phase": "closed"}, {"seq": 2}),
        ({"seq": 1}, {"seq": 2, "boot": testing.boot_at(1)}), ({"seq": 1}, {"seq": 2, "cluster": "ab" * 16}),
        ({"seq": 1, "tasks": testing.tasks(2)}, {"seq": 2, "tasks": testing.tasks(2, first_no=2, weight=2)}),
        ({"seq": 1, "tasks": testing.tasks(2)}, {"seq": 2, "tasks": testing.tasks(2, first_no=3)}),
    ],
)  # fmt: skip
def test_what_cannot_be_one_message_is_none(earlier: dict[str, Any], later: dict[str, Any]) -> None:
    assert joined(plain_of(testing.message(**earlier)), plain_of(testing.message(**later))) is None
    assert joined(plain_of(testing.message(seq=1)), plain_of(testing.message(seq=2))) is not None


def test_a_merged_message_is_as_lean_as_any() -> None:
    bare = [testing.message(seq=n, workers=wire.Workers()) for n in (3, 4)]
    both = as_one(bare)
    assert both == {**plain_of(bare[1]), "merged": 1}
    assert json.loads(wire.encode(decoded(both))) == both
