"""What `check` lets through stops no sealing and no question, however it adds up; nor does what an older one let in."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from daskscope import wire
from daskscope.errors import BadMessage
from daskscope.testing import (
    CLUSTER,
    START_MS,
    death,
    environment,
    exception,
    groups,
    logs,
    member,
    message,
    metrics,
    profile,
    span,
    tasks,
    workers,
)
from daskscope.wire import LATEST_MS
from daskscope_lambdas.adapters.local import DiskVault
from daskscope_lambdas.handlers.answering import answer
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.check import check
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.service.computations import Computations
from daskscope_lambdas.service.computations import Wanted as Chosen
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.limits import COUNT, EITHER, GROWN, MAX_VALUE, PLACE, SMALL
from daskscope_lambdas.service.observed import Lines, Observed
from daskscope_lambdas.service.profiles import Profiles, Wanted
from daskscope_lambdas.service.queries import Queries
from daskscope_lambdas.service.rows import to_rows
from daskscope_lambdas.service.same_code import SameCode
from daskscope_lambdas.service.team import Team
from daskscope_lambdas.service.timelines import Timelines
from daskscope_lambdas.testing import FakeClock
from tests.query.lake_rig import DAY, DAY_S, START, LakeRig, catalog, envelope

ROW = ClusterRow(account="acme", id=1, uuid=CLUSTER, started_at=START, first_received_at=START,
                 last_received_at=START + DAY_S)  # fmt: skip
FRAME = wire.Frame(code="a" * 32, file="job.py", line=1)
_COLUMNS = ("memory_limit_mib", "memory_mib", "managed_mib", "spilled_mib", "net_read_kib_s", "net_write_kib_s",
            "disk_read_kib_s", "disk_write_kib_s")  # fmt: skip


def extreme(small: int, count: int, grown: int, either: int, value: float) -> dict[str, Any]:
    """Two of each thing, each number as large as can be said of it."""
    columns: dict[str, Any] = dict.fromkeys((*_COLUMNS, "cpu_pct", "gpu_pct", "gpu_memory_mib"), [small] * 2)
    group: dict[str, Any] = {"n_tasks": count, "nbytes": either, "states": {"memory": count, "erred": count},
                             "action_us": {"compute": either, "transfer": either}, "span": span().id}  # fmt: skip
    memory = {"memory_bytes": grown, "memory_limit_bytes": grown}
    return {
        "uptime_us": grown,
        "totals": wire.Totals(n_workers=small, n_tasks=count, thread_us=grown, action_us={"a": grown}, **memory),
        "itself": wire.Itself(cpu_us=count, slowest_us=count, n_messages=count, n_bytes=count),
        "lost": {"buffer": count},
        "workers": workers(["tcp://a", "tcp://b"], **columns),
        "groups": groups({"no": 0, **group}, {"no": 1, **group}),
        "exceptions": [exception(no=no, count=count) for no in range(2)],
        "metrics": metrics({"value": value}, {"value": value, "span": None}),
        "profiles": [profile(count=[count, count], sample_us=count, cut=count)] * 2,
        "members": [member(memory_limit_bytes=grown, hardware=0, environment=0)],
        "environments": [environment()],
        "hardware": [wire.Hardware(cores=small, memory_bytes=grown)],
        "deaths": [death(n_processing=count, n_results_lost=count, memory_slope_bytes_s=either, **memory)],
        "logs": logs({"no": 0, "dropped": count}, {"no": 1, "dropped": count}),
        "tasks": tasks(2, duration_us=[count] * 2, nbytes=[either] * 2, weight=small),
        "spans": [span()],
        "computations": [wire.Computation(no=0, start_ms=START_MS, stop_ms=LATEST_MS, code=[[FRAME]])],
    }  # fmt: skip


BOUND = (SMALL.high, COUNT.high, GROWN.high, EITHER.high, MAX_VALUE)
LOWEST = (0, 0, 0, EITHER.low, -MAX_VALUE)
BEYOND = (SMALL.high, 2**63 - 1, 2**63 - 1, 2**63 - 1, 1.7e308)
BELOW = (SMALL.low, -(2**63), -(2**63), -(2**63), -1.7e308)


def answered(rig: LakeRig) -> int:
    """How many records all questions have, each as JSON that every reader can read."""
    clock = FakeClock()
    clock.at = START + DAY_S
    asker = Asker(str(rig.root), rig.seals, rig.deletions)
    observed, queries, lines = Observed(asker, clock), Queries(asker, clock), Timelines(asker)
    listed = catalog({CLUSTER: "ada"}, dollars=1.0, thread_us=1)
    codes = CodeKeeper(rig.objects, DiskVault(rig.root / "keys"))
    work, profiles = Computations(asker, clock, codes, lambda _: listed), Profiles(asker, clock, lambda _: listed)
    team, same_code = Team(asker, clock, lambda _: listed), SameCode(asker, clock, codes, lambda _: listed)
    fingerprints = {each["fingerprint"] for each in same_code.code("acme", 9, 0).rows}
    found = [
        observed.members(ROW, 9, 0), observed.deaths(ROW, 9, 0), observed.logs(ROW, 9, 0, Lines()),
        observed.spans(ROW, 9, 0),
        observed.metrics(ROW, 9, 0, None, False), observed.metrics(ROW, 9, 0, None, True), observed.tasks(ROW, 9, 0),
        profiles.of_cluster(ROW, Wanted()).stacks(9, 0), profiles.of_account("acme", Wanted(by="user")).trees(),
        lines.cluster(ROW, 9), lines.worker(ROW, "tcp://a", 9), work.of_cluster(ROW, 9, 0),
        work.groups(ROW, 9, 0), work.prefixes(ROW), work.of_account("acme", 9, 0, Chosen(sort="cost")),
        queries.exceptions(ROW, 9, 0), queries.workers(ROW), queries.exception_kinds(ROW), queries.events(ROW, 9, 0),
        team.prefixes("acme", 9, 0), team.prefixes_of(ROW, 9, 0, "time"), team.families("acme", 9, 0),
        team.deaths("acme", 9, 0), team.events("acme", 9, 0), same_code.code("acme", 9, 0),
        *(same_code.hardware("acme", 9, 0, fingerprint=each) for each in fingerprints),
    ]  # fmt: skip
    assert [each.skipped for each in found] == [[]] * len(found)
    for each in found:
        json.loads(json.dumps(each.rows, allow_nan=False, default=str))
    assert answer({"items": found[0].rows}).status_code == 200
    return sum(len(each.rows) for each in found)


def sealed(rig: LakeRig, said: Sequence[dict[str, Any]]) -> None:
    """Two messages on each of two days, the first day sealed, asked before and after."""
    for number, each in enumerate(said):
        rig.write(envelope(seq=number, received_at=START + DAY_S * (number // 2), **each))
    before = answered(rig)
    clock = FakeClock()
    clock.at = START + DAY_S
    assert Compactor(rig.objects, rig.seals, clock, str(rig.root)).run() == [DAY]
    assert not [key for key in rig.listed("rollups/") if key.endswith("unmade")]
    assert answered(rig) == before >= 20


@pytest.mark.parametrize("numbers", [BOUND, LOWEST])
def test_at_the_bound(rig: LakeRig, numbers: tuple[int, int, int, int, float]) -> None:
    said = extreme(*numbers)
    check(message(**said))
    sealed(rig, [said] * 4)


@pytest.mark.parametrize(
    "numbers",
    [
        [BEYOND] * 4,
        [BEYOND, BELOW] * 2,
        pytest.param([BELOW] * 4, marks=pytest.mark.long),
        pytest.param([BELOW, BELOW, BEYOND, BEYOND], marks=pytest.mark.long),
    ],
)
def test_what_an_older_server_let_in(rig: LakeRig, numbers: Sequence[tuple[int, int, int, int, float]]) -> None:
    said = [extreme(*each) for each in numbers]
    for each in said:
        with pytest.raises(BadMessage):
            check(message(**each))
    sealed(rig, said)


EDGES = st.tuples(
    *(st.sampled_from([low, 0, high]) | st.integers(low, high)
      for low, high in ((0, SMALL.high), (0, COUNT.high), (0, GROWN.high), (EITHER.low, EITHER.high))),
    st.floats(-MAX_VALUE, MAX_VALUE),
)  # fmt: skip


@pytest.mark.long
@settings(max_examples=12, deadline=None, phases=[Phase.generate])
@given(st.lists(EDGES, min_size=4, max_size=4))
def test_whatever_is_let_through(numbers: list[tuple[int, int, int, int, float]]) -> None:
    said = [extreme(*each) for each in numbers]
    for each in said:
        check(message(**each))
    with tempfile.TemporaryDirectory() as folder:
        sealed(LakeRig(Path(folder)), said)


def test_a_sum_over_as_many_workers_as_a_message_may_have_fits() -> None:
    n = 30_000
    posted = message(workers=workers([str(no) for no in range(n)], **dict.fromkeys(_COLUMNS, [SMALL.high] * n)))
    check(posted)
    (samples,) = [rows for table, rows in to_rows([envelope(workers=posted.workers)]) if table.name == "samples"]
    assert samples.column("net_read_kib_s").to_pylist() == [n * SMALL.high]
    assert SMALL.high * 500_000 < 2**63


OVER = {
    "$.totals.n_tasks": {"totals": wire.Totals(n_tasks=COUNT.high + 1)},
    "$.totals.thread_us": {"totals": wire.Totals(thread_us=GROWN.high + 1)},
    "$.totals.action_us.compute": {"totals": wire.Totals(action_us={"load": 1, "compute": GROWN.high + 1})},
    "$.itself.n_bytes": {"itself": wire.Itself(n_bytes=-1)},
    "$.workers.memory_mib": {"workers": workers(["a"], memory_mib=[SMALL.high + 1])},
    "$.workers.net_read_kib_s": {"workers": workers(["a"], net_read_kib_s=[SMALL.high + 1])},
    "$.groups.n_tasks": {"groups": groups({"no": 0, "n_tasks": COUNT.high + 1})},
    "$.groups.nbytes": {"groups": groups({"no": 0, "nbytes": EITHER.high + 1})},
    "$.groups.states.memory": {"groups": groups({"no": 0, "states": {"memory": COUNT.high + 1}})},
    "$.groups.action_us.compute": {"groups": groups({"no": 0, "action_us": {"compute": EITHER.low - 1}})},
    "$.exceptions.count": {"exceptions": [exception(count=COUNT.high + 1)]},
    "$.members.memory_limit_bytes": {"members": [member(memory_limit_bytes=GROWN.high + 1)]},
    "$.hardware.memory_bytes": {"hardware": [wire.Hardware(memory_bytes=-1)]},
    "$.deaths.n_results_lost": {"deaths": [death(n_results_lost=COUNT.high + 1)]},
    "$.deaths.memory_slope_bytes_s": {"deaths": [death(memory_slope_bytes_s=EITHER.high + 1)]},
    "$.profiles[0].count": {"profiles": [profile(count=[COUNT.high + 1, 1])]},
    "$.profiles.sample_us": {"profiles": [profile(sample_us=COUNT.high + 1)]},
    "$.profiles.first_no": {"profiles": [profile(first_no=PLACE.high + 1)]},
    "$.profiles.cut": {"profiles": [profile(cut=-1)]},
    "$.tasks.duration_us": {"tasks": tasks(1, duration_us=[COUNT.high + 1])},
    "$.tasks.nbytes": {"tasks": tasks(1, nbytes=[EITHER.high + 1])},
    "$.logs.dropped": {"logs": logs({"no": 0, "dropped": COUNT.high + 1})},
    "$.lost.buffer": {"lost": {"buffer": COUNT.high + 1}},
    "$.metrics.value": {"metrics": metrics({"value": 2 * MAX_VALUE})},
}


@pytest.mark.parametrize("place", OVER)
def test_a_number_over_its_bound_is_refused_by_its_place(place: str) -> None:
    with pytest.raises(BadMessage) as refused:
        check(message(**OVER[place]))
    assert refused.value.place == place
