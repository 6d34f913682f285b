"""One way to bound what stands in a message."""

import math
from typing import Any

import pytest

from daskscope.collect.bounds import MAX_BYTES, MAX_WORKER_NAME, at_once, n_bytes, n_items, whole, worker_name


class Loud:
    def __str__(self) -> str:
        raise AssertionError("the user's code was run")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("w0", "w0"),
        (7, "7"),
        (1.5, "1.5"),
        ("x" * 500, "x" * (MAX_WORKER_NAME - 3) + "..."),
        (Loud(), "<Loud>"),
        (None, "<NoneType>"),
    ],
)
def test_a_name_of_a_worker_is_a_short_text_and_runs_no_code(name: Any, told: str) -> None:
    assert worker_name(name) == told


@pytest.mark.parametrize(
    ("value", "told"), [(0, 0), (5, 5), (6, 0), (-1, 0), (True, 0), (2.0, 0), ("3", 0), (None, 0), (10**400, 0)]
)
def test_a_whole_number_within_its_bounds(value: Any, told: int) -> None:
    assert whole(value, 5) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, 0), (12.9, 12), (MAX_BYTES, MAX_BYTES), (MAX_BYTES + 1, 0), (-1, 0), (math.nan, 0), (math.inf, 0),
     ("7", 0), (None, 0), (10**400, 0)],
)  # fmt: skip
def test_a_size(value: Any, told: int) -> None:
    assert n_bytes(value) == told


@pytest.mark.parametrize(("value", "told"), [([1, 2], 2), ({}, 0), ("abc", 3), (None, 0), (7, 0)])
def test_what_can_be_counted_is(value: Any, told: int) -> None:
    assert n_items(value) == told


def test_of_many_that_wait_a_twentieth_is_taken_and_never_too_many() -> None:
    assert [at_once(n, 100, 400) for n in (0, 100, 2_000, 2_020, 6_000, 8_000, 10**6)] == [
        100, 100, 100, 101, 300, 400, 400,
    ]  # fmt: skip
