"""What `check` lets through, the lake takes: nobody could answer for it later."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskscope import testing, wire
from daskscope.errors import BadMessage
from daskscope.testing import START_MS, environment, member, message, profile, tasks
from daskscope_lambdas.service.check import MAX_REPEATED, check
from daskscope_lambdas.service.envelope import Envelope
from daskscope_lambdas.service.rows import to_rows
from daskscope_lambdas.service.size import n_repeated
from tests.plugin.messages import messages

PLACES = {"cluster": "ab" * 16, "boot": "0" * 24, "seq": 1, "next_s": 10.0, "made_at_ms": START_MS, "uptime_us": 5}


def kept(posted: wire.Message) -> int:
    """How many rows the lake has of it."""
    rows = to_rows([Envelope(account="acme", cluster_id=1, received_at=1.0, message=posted)])
    return sum(found.num_rows for _, found in rows)


EDGES = st.sampled_from([0, 1, 20, START_MS, START_MS + 1, 2**31 - 1, 2**31, -(2**31), -1, 2**53, 2**63 - 1])
"""Near what columns take, and some that they do not."""


def _tame(part: Any, numbers: Iterator[int]) -> None:
    """Other numbers in the place of those that `part` has, but for those that count in lists."""
    for name in set(part.__slots__) - {"environment", "hardware", "worker", "stack"}:
        value = getattr(part, name)
        if isinstance(value, list):
            value[:] = [next(numbers) if type(each) is int else each for each in value]
        elif type(value) is int:
            setattr(part, name, next(numbers))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(messages, st.lists(EDGES, min_size=5, max_size=40))
def test_what_is_let_through_fits_the_lake(posted: wire.Message, edges: list[int]) -> None:
    numbers = itertools.cycle(edges)
    for part in (*posted.members, *posted.deaths, *posted.spans, *posted.exceptions, *posted.events, *posted.profiles,
                 *posted.computations, *posted.hardware, posted.totals, posted.itself, posted.workers, posted.groups,
                 posted.logs, posted.tasks):  # fmt: skip
        _tame(part, numbers)
    for name, value in PLACES.items():
        setattr(posted, name, value)
    with suppress(BadMessage):
        check(posted)
        assert kept(posted) >= 1


def _of(name: str, number: int) -> dict[str, Any]:
    makers: dict[str, dict[str, Any]] = {
        "totals.n_workers": {"totals": wire.Totals(n_workers=number)},
        "totals.scheduler_loop_ms": {"totals": wire.Totals(scheduler_loop_ms=number)},
        "workers.cpu_pct": {"workers": testing.workers(["a"], cpu_pct=[number])},
        "workers.gpu_pct": {"workers": testing.workers(["a"], gpu_pct=[number], gpu_memory_mib=[1])},
        "groups.no": {"groups": testing.groups({"no": number})},
        "groups.dependencies": {"groups": testing.groups({"no": 0, "dependencies": [number]})},
        "members.no": {"members": [member(no=number)]},
        "members.n_threads": {"members": [member(n_threads=number)]},
        "hardware.cores": {"hardware": [wire.Hardware(cores=number)], "members": [member(hardware=0)]},
        "deaths.no": {"deaths": [testing.death(no=number)]},
        "tasks.group": {"tasks": tasks(1, group=[number])},
        "tasks.weight": {"tasks": tasks(1, weight=number)},
        "logs.level": {"logs": testing.logs({"no": 0, "level": number})},
        "profiles.n_workers": {"profiles": [profile(n_workers=number)]},
        "exceptions.group": {"exceptions": [testing.exception(group=number)]},
        "events.no": {"events": [testing.event(no=number)]},
    }
    return makers[name]


SMALL = (
    "totals.n_workers", "totals.scheduler_loop_ms", "workers.cpu_pct", "workers.gpu_pct", "groups.no",
    "groups.dependencies", "members.no", "members.n_threads", "hardware.cores", "deaths.no", "tasks.group",
    "tasks.weight", "logs.level", "profiles.n_workers", "exceptions.group", "events.no",
)  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_a_number_of_32_bits_is_taken_and_a_larger_one_named(name: str) -> None:
    largest = message(**_of(name, 2**31 - 1))
    check(largest)
    assert kept(largest)
    with pytest.raises(BadMessage, match="32 bits") as refused:
        check(message(**_of(name, 2**31)))
    assert refused.value.place == f"$.{name}"


def test_moments_of_every_new_part_are_checked() -> None:
    for place, changes in {
        "$.members[0].joined_ms": {"members": [member(joined_ms=-1)]},
        "$.members[0].left_ms": {"members": [member(left_ms=1 << 60)]},
        "$.deaths[0].at_ms": {"deaths": [testing.death(at_ms=-1)]},
        "$.spans[0].enqueued_ms": {"spans": [testing.span(enqueued_ms=-1)]},
        "$.spans[0].stop_ms": {"spans": [testing.span(stop_ms=1 << 60)]},
        "$.logs.at_ms": {"logs": testing.logs({"no": 0}, {"no": 1, "at_ms": -1})},
        "$.tasks.start_ms": {"tasks": tasks(2, start_ms=[0, -START_MS - 1])},
        "$.profiles[1].to_ms": {"profiles": [profile(), profile(to_ms=1 << 60)]},
    }.items():
        with pytest.raises(BadMessage, match="no time between") as refused:
            check(message(**changes))
        assert refused.value.place == place


HOLLOW: dict[str, Callable[[], dict[str, Any]]] = {
    "$.profiles[0].frames": lambda: {
        "profiles": [profile(frames=["f" * 100_000], prefix=[""] * 800, stack=[[0]] * 800, count=[1] * 800)]
    },
    "$.tasks.addresses": lambda: {"tasks": tasks(800, addresses=["a" * 100_000], worker=[0] * 800)},
    "$.members": lambda: {
        "members": [member(no=no, environment=0) for no in range(800)],
        "environments": [environment(packages={"p" * 50_000: "v" * 50_000})],
    },
}


@pytest.mark.parametrize("place", HOLLOW)
def test_a_text_that_stands_once_does_not_fill_memory_in_many_rows(place: str) -> None:
    posted = message(**HOLLOW[place]())
    assert len(wire.encode(posted)) < 300_000
    assert n_repeated(posted) > MAX_REPEATED
    with pytest.raises(BadMessage, match="written out") as refused:
        check(posted)
    assert refused.value.place == place


@pytest.mark.parametrize(
    ("place", "changes"),
    [
        ("$.members", lambda: {"members": [member(no=no, environment=0) for no in range(1_000)],
                       "environments": [environment(packages={str(n): "" for n in range(1_000)})]}),
        ("$.members", lambda: {"members": [member(no=no, hardware=0) for no in range(1_000)],
                       "hardware": [wire.Hardware(gpus=[""] * 1_000)]}),
        ("$.profiles", lambda: {"profiles": [profile(frames=[""], prefix=[""], stack=[[0] * 600_000], count=[1])]}),
        ("$.profiles", lambda: {"profiles": [profile(frames=[""] * 600_000, prefix=[], stack=[], count=[])]}),
        ("$.tasks", lambda: {"tasks": tasks(600_000)}),
        ("$.metrics", lambda: {"metrics": testing.metrics(*[{}] * 600_000)}),
        ("$.spans", lambda: {"spans": [wire.Span(id="", name=[""] * 600_000, enqueued_ms=0)]}),
        ("$.deaths", lambda: {"deaths": [wire.Death(no=0, at_ms=0, worker="", expected=True, reason="",
                                            processing=[""] * 600_000)]}),
        ("$.environments", lambda: {"environments": [wire.Environment(packages={str(n): "" for n in range(600_000)})]}),
        ("$.hardware", lambda: {"hardware": [wire.Hardware()] * 600_000}),
        ("$.codes", lambda: {"codes": [wire.Code(hash="", text="")] * 600_000}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_more_entries_than_a_message_may_have_are_refused_by_their_place(
    place: str, changes: Callable[[], dict[str, Any]]
) -> None:
    with pytest.raises(BadMessage, match="rows and elements") as refused:
        check(message(**changes()))
    assert refused.value.place == place


def test_every_list_of_a_message_is_counted() -> None:
    """A part that came to the format and not to `entries` would be unbounded."""
    counted = {"workers", "groups", "computations", "codes", "exceptions", "events", "members", "environments",
               "hardware", "deaths", "spans", "metrics", "tasks", "logs", "profiles", "sums"}  # fmt: skip
    apart = {"identity", "itself", "totals", "lost"}
    scalars = {"v", "cluster", "boot", "seq", "made_at_ms", "uptime_us", "next_s", "phase", "reason",
               "started_at_ms", "part", "halved", "merged"}  # fmt: skip
    assert set(wire.Message.__slots__) == counted | apart | scalars
