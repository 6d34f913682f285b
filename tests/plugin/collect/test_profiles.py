"""Profiles of many workers: what is taken, and one profile of all of them that holds the same samples."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from daskscope import wire
from daskscope.collect import profiles as module
from daskscope.collect.profiles import ProfileReader, merged


def payload(**changes: Any) -> dict[str, Any]:
    """As an agent sends it, and Dask hands it on: lists have become tuples."""
    good: dict[str, Any] = {
        "kind": "profile",
        "from": "worker",
        "worker": "tcp://10.0.0.1:1",
        "from_ms": 1_000_000,
        "to_ms": 1_060_000,
        "sample_us": 50_000,
        "frames": ("load (etl/a.py:3)", "wait (threading.py:288)", "clean (etl/a.py:9)"),
        "prefix": ("load", "clean"),
        "stack": ((0, 1), (2,)),
        "count": (7, 3),
        "cut": 2,
    }
    return {**good, **changes}


def samples(profiles: list[wire.Profile]) -> Counter[tuple[str, tuple[str, ...]]]:
    counted: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for profile in profiles:
        for prefix, stack, count in zip(profile.prefix, profile.stack, profile.count, strict=True):
            counted[prefix, tuple(profile.frames[n] for n in stack)] += count
    return counted


def take(*payloads: tuple[str, dict[str, Any]]) -> list[wire.Profile]:
    reader = ProfileReader()
    for worker, each in payloads:
        reader.take(worker, each)
    assert not reader.lost
    return reader.read()


def test_what_an_agent_tells_is_handed_out_once() -> None:
    reader = ProfileReader()
    reader.take("tcp://10.0.0.1:1", payload())
    (profile,) = reader.read()
    assert profile == wire.Profile(
        from_ms=1_000_000,
        to_ms=1_060_000,
        sample_us=50_000,
        frames=["load (etl/a.py:3)", "wait (threading.py:288)", "clean (etl/a.py:9)"],
        prefix=["load", "clean"],
        stack=[[0, 1], [2]],
        count=[7, 3],
        cut=2,
    )
    assert reader.read() == []


def test_profiles_of_several_workers_add_up() -> None:
    first = payload()
    second = payload(
        frames=("clean (etl/a.py:9)", "load (etl/a.py:3)", "wait (threading.py:288)"),
        stack=((1, 2), (0,), (0, 1)),
        prefix=("load", "other", "clean"),
        count=(1, 10, 100),
        cut=1,
        from_ms=990_000,
        to_ms=1_050_000,
    )
    taken = take(("a", first), ("b", second))
    (profile,) = merged(taken)
    assert samples([profile]) == samples(taken)
    assert samples([profile])["load", ("load (etl/a.py:3)", "wait (threading.py:288)")] == 8
    assert (profile.from_ms, profile.to_ms, profile.n_workers, profile.cut) == (990_000, 1_060_000, 2, 3)
    assert profile.count == sorted(profile.count, reverse=True)
    assert len(profile.frames) == len(set(profile.frames)) == 3


def test_a_worker_that_told_twice_is_one_worker() -> None:
    (profile,) = merged(take(("a", payload()), ("a", payload()), ("b", payload())))
    assert profile.n_workers == 2
    assert profile.count == [21, 9]


def test_times_from_look_to_look_are_kept_apart() -> None:
    taken = take(("a", payload()), ("a", payload(sample_us=100_000)), ("b", payload(sample_us=100_000)))
    assert [(p.sample_us, p.n_workers, p.count) for p in merged(taken)] == [
        (50_000, 1, [7, 3]),
        (100_000, 2, [14, 6]),
    ]


def test_of_none_nothing() -> None:
    assert merged([]) == []


def test_rare_stacks_are_cut_and_their_samples_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STACKS", 1)
    (profile,) = merged(take(("a", payload())))
    assert (profile.count, profile.cut) == ([7], 2 + 3)
    assert profile.frames == ["load (etl/a.py:3)", "wait (threading.py:288)"], "no frame that none uses"


def test_no_sample_is_lost_whatever_was_seen() -> None:
    chance = random.Random(7)
    taken: list[tuple[str, dict[str, Any]]] = []
    for worker in range(30):
        frames = tuple({f"f{chance.randrange(40)} (a.py:1)" for _ in range(20)})
        stacks = tuple(tuple(chance.choices(range(len(frames)), k=chance.randrange(1, 9))) for _ in range(50))
        prefix, count = tuple(chance.choices(("x", "y"), k=50)), tuple(chance.choices(range(9), k=50))
        made = payload(frames=frames, stack=stacks, prefix=prefix, count=count, cut=chance.randrange(3))
        taken.append((f"w{worker}", made))
    before = take(*taken)
    (after,) = merged(before)
    assert samples([after]) == samples(before)
    assert after.cut == sum(profile.cut for profile in before)
    message = wire.Message(v=1, cluster="c", boot="b", seq=0, made_at_ms=0, uptime_us=0, next_s=1.0, profiles=[after])
    assert wire.decode(wire.encode(message)) == message


BAD: list[dict[str, Any]] = [
    {"from_ms": None},
    {"from_ms": "1"},
    {"from_ms": -1},
    {"from_ms": True},
    {"from_ms": 1.5},
    {"to_ms": 999_999},
    {"to_ms": 10**20},
    {"sample_us": 0},
    {"cut": -1},
    {"frames": None},
    {"frames": "abc"},
    {"frames": ("a", "b", 3)},
    {"frames": ("x" * 3_000_000, "b", "c")},
    {"prefix": ("load",)},
    {"prefix": ("load", 7)},
    {"stack": ((0, 1), 2)},
    {"stack": ((0, 1), "ab")},
    {"stack": ((0, 1), (1,) * 300)},
    {"count": (7, None)},
    {"count": (7, -3)},
    {"count": (7, 10**30)},
]


@pytest.mark.parametrize("n", range(len(BAD)))
def test_what_no_agent_sends_is_left_out_and_counted(n: int) -> None:
    reader = ProfileReader()
    reader.take("a", payload(**BAD[n]))
    reader.take("a", {})
    reader.take("b", payload())
    assert reader.lost == {"profiles": 2}
    assert [profile.count for profile in reader.read()] == [[7, 3]]


@pytest.mark.parametrize("stack", [(3,), (-1,), ("a",), ([],), (0.5,), (None,), (0, 1, 99)], ids=str)
def test_samples_of_a_stack_that_points_nowhere_are_cut(stack: tuple[Any, ...]) -> None:
    (profile,) = merged(take(("a", payload(stack=((0, 1), stack)))))
    assert (profile.count, profile.cut) == ([7], 2 + 3)
    assert profile.frames == ["load (etl/a.py:3)", "wait (threading.py:288)"]


def test_numbers_that_only_look_like_one_become_one() -> None:
    taken = take(("a", payload(stack=((0, 1), (True,)))))
    assert merged(taken)[0].stack == [[0, 1], [1]]
    assert not [n for stack in merged(taken)[0].stack for n in stack if type(n) is not int]


def test_what_nobody_reads_does_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 10)
    reader = ProfileReader()
    for n in range(5):
        reader.take(f"w{n}", payload())
    assert len(reader.read()) == 2, "of 5 stacks and frames each"
    assert reader.lost == {"profiles": 3}
    reader.take("w9", payload())
    assert len(reader.read()) == 1
