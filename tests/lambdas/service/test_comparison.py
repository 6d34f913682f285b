"""What differs between clusters or computations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope_lambdas.service.comparison import MAX_LINES, Side, Work, compare, frames_of, work_of


def side(number: int = 1, **changes: Any) -> Side:
    plain: dict[str, Any] = {
        "item": {"id": number}, "measures": {}, "seconds": {}, "work": {}, "facts": {}, "code": None, "frames": None,
    }  # fmt: skip
    return Side(**plain | changes)


def test_measures_that_any_side_has_in_their_order_and_unit() -> None:
    found = compare("cluster", [side(measures={"n_tasks": 4, "dollars": None}), side(2, measures={"duration": 1.5})])
    assert found["measures"] == [
        {"name": "duration", "unit": "s", "values": [None, 1.5]},
        {"name": "n_tasks", "unit": "count", "values": [4, None]},
    ]
    assert (found["kind"], found["items"]) == ("cluster", [{"id": 1}, {"id": 2}])


def test_dollars_are_units_of_the_sides_currency() -> None:
    euros = [side(measures={"dollars": 1.0, "duration": 2.0}, currency="EUR")] * 2
    assert [each["unit"] for each in compare("cluster", euros)["measures"]] == ["s", "EUR"]
    mixed = [*euros, side(measures={"dollars": 1.0})]
    assert [each["unit"] for each in compare("cluster", mixed)["measures"]] == ["s", "EUR/USD"]


def test_seconds_by_action_with_the_greatest_spread_first() -> None:
    sides = [side(seconds={"compute": 10.0, "transfer": 1.0}), side(2, seconds={"compute": 11.0, "disk-read": 9.0})]
    assert compare("cluster", sides)["seconds"] == [
        {"action": "disk-read", "values": [0.0, 9.0]},
        {"action": "compute", "values": [10.0, 11.0]},
        {"action": "transfer", "values": [1.0, 0.0]},
    ]


def test_task_prefixes_by_their_share_of_the_difference() -> None:
    first = {"read": Work(10.0, 5, 100), "sum": Work(7.0, 2, 8)}
    second = {"read": Work(4.0, 5, 100), "sum": Work(7.0, 2, 8), "fill": Work(2.0, 1, 1)}
    found = compare("cluster", [side(work=first), side(2, work=second)])["groups"]
    assert found == [
        {"prefix": "read", "seconds": [10.0, 4.0], "n_tasks": [5, 5], "bytes": [100, 100], "share": 0.75},
        {"prefix": "fill", "seconds": [0.0, 2.0], "n_tasks": [0, 1], "bytes": [0, 1], "share": 0.25},
        {"prefix": "sum", "seconds": [7.0, 7.0], "n_tasks": [2, 2], "bytes": [8, 8], "share": 0.0},
    ]
    (same,) = compare("cluster", [side(work={"sum": Work(7.0, 2, 8)})] * 2)["groups"]
    assert same["share"] is None


SECONDS = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1e9), max_size=6)


@given(st.lists(SECONDS, min_size=2, max_size=8))
def test_shares_of_the_difference_add_up_to_all_of_it(sides: list[dict[str, float]]) -> None:
    works = [{prefix: Work(seconds, 1, 1) for prefix, seconds in each.items()} for each in sides]
    groups = compare("cluster", [side(number, work=work) for number, work in enumerate(works)])["groups"]
    shares = [group["share"] for group in groups]
    if any(shares):
        assert sum(shares) == pytest.approx(1)
        assert shares == sorted(shares, reverse=True)
    else:
        assert shares == [None] * len(groups)


def test_facts_that_differ_and_only_those() -> None:
    first = {("cluster", "kind"): "LocalCluster", ("package", "numpy"): "1", ("worker", "threads"): [2, 4]}
    second = {("cluster", "kind"): "LocalCluster", ("package", "numpy"): "2", ("package", "dask"): "3"}
    assert compare("cluster", [side(facts=first), side(2, facts=second)])["differs"] == [
        {"what": "package", "name": "dask", "values": [None, "3"]},
        {"what": "package", "name": "numpy", "values": ["1", "2"]},
        {"what": "worker", "name": "threads", "values": [[2, 4], None]},
    ]


def test_code_is_held_against_the_first() -> None:
    sides = [side(code=["a = 1\nb = 2"]), side(2, code=["a = 1", "b = 3"]), side(3, code=["a = 1", "b = 2"])]
    found = compare("cluster", sides)
    assert found["code"] == [
        {"from": 1, "to": 2, "diff": "--- 1\n+++ 2\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3"},
    ]
    assert found["missing"] == ["1: nothing of its profile is kept", "2: nothing of its profile is kept",
                                "3: nothing of its profile is kept"]  # fmt: skip


def test_what_is_not_known_is_said() -> None:
    frames = {"load (job.py:7)": 1.0}
    known = side(code=["a"], frames=frames, missing=["its owner is not told"])
    found = compare("cluster", [known, side(2, frames=frames), side(3, code=["a\n" * (MAX_LINES + 1)], frames=frames)])
    assert found["code"] == []
    assert found["missing"] == [
        "1: its owner is not told",
        "2: its code is not kept",
        "3: its code has 5,001 lines; up to 5,000 are compared",
    ]


def test_frames_by_how_much_their_share_changed() -> None:
    found = compare("cluster", [side(frames={"a": 3.0, "b": 1.0}), side(2, frames={"b": 20.0, "c": 20.0})])["profile"]
    assert found == [
        {"frame": "a", "shares": [0.75, 0.0], "seconds": [3.0, 0.0]},
        {"frame": "c", "shares": [0.0, 0.5], "seconds": [0.0, 20.0]},
        {"frame": "b", "shares": [0.25, 0.5], "seconds": [1.0, 20.0]},
    ]
    assert compare("cluster", [side(frames={"a": 3.0}), side(2)])["profile"] == []


def test_work_and_frames_out_of_records() -> None:
    prefixes = [
        {"prefix": "sum", "seconds": {"compute": 1.0, "transfer": 0.5}, "n_tasks": 2, "bytes": 8},
        {"prefix": "read", "seconds": {}, "n_tasks": 1, "bytes": 1},
    ]
    assert work_of(prefixes) == {"sum": Work(1.5, 2, 8), "read": Work(0, 1, 1)}
    stacks = [
        {"stack": ["main", "load"], "seconds": 2.0},
        {"stack": ["load"], "seconds": 1.0},
        {"stack": [], "seconds": 9},
    ]
    assert frames_of(stacks) == {"load": 3.0}
    assert frames_of([{"stack": ["a"], "seconds": 0.0}]) is None
