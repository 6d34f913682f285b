"""What a team's clusters cost over days."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope import wire
from daskscope.testing import CLUSTER, START_MS, boot_at, identity, metrics
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.catalog_rows import row_as_json
from daskscope_lambdas.service.costs import KEYS, Costs, prices_record
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.price_file import packaged
from daskscope_lambdas.service.price_store import PriceKeeper, PriceReader
from daskscope_lambdas.testing import FakeClock
from daskscope_query.given import ask_given
from daskscope_query.tables import CATALOG, CLUSTERS_DAILY
from tests.query.lake_rig import DAY, DAY_S, OTHER, START, LakeRig, envelope

HOUR_US = 3_600_000_000
DOLLARS = ("thread_hours", "machine_hours", "dollars", "idle", "failed")
THIRD = "0" * 31 + "3"
Over = Callable[..., list[dict[str, Any]]]


def machine(instance_type: str | None, hours: float, threads: int, dollars: float) -> dict[str, Any]:
    return {
        "instance_type": instance_type, "n_machines": 1, "machine_us": round(hours * HOUR_US),
        "thread_us": round(threads * hours * HOUR_US), "gib_hours": 0.0, "dollars": dollars,
    }  # fmt: skip


def listed(cluster: str, number: int, *machines: dict[str, Any], thread_h: float, **values: Any) -> dict[str, Any]:
    """A row of the catalog: what the cluster cost in all."""
    plain: dict[str, Any] = {
        "account": "acme", "cluster": cluster, "cluster_id": number, "name": f"c{number}", "user": "ada",
        "thread_us": round(thread_h * HOUR_US), "machines": list(machines), "quality": "measured",
        "dollars": sum(each["dollars"] for each in machines) if machines else None,
    }  # fmt: skip
    return plain | values


def costs_of(rig: LakeRig, clock: FakeClock, rows: Sequence[dict[str, Any]]) -> Costs:
    catalog = pa.Table.from_pylist(list(rows), CATALOG.schema)
    asker = Asker(str(rig.root), rig.seals, rig.deletions)
    return Costs(asker, PriceReader(rig.objects, clock), clock, lambda _account, _columns: catalog)


def beat(cluster: str, number: int, day: int, thread_h: float, compute_h: float = 0, **changes: Any) -> Any:
    totals = wire.Totals(thread_us=round(thread_h * HOUR_US), action_us={"compute": round(compute_h * HOUR_US)})
    values: dict[str, Any] = {"identity": identity(name=f"c{number}", user="ada"), "totals": totals}
    return envelope(cluster=cluster, cluster_id=number, seq=day, received_at=START + day * DAY_S, **values | changes)


def at(day: int) -> datetime:
    return datetime.fromtimestamp(START + day * DAY_S, UTC)


@pytest.fixture
def over(rig: LakeRig, clock: FakeClock) -> Over:
    """Two clusters: one over a Saturday to Monday with two kinds of machine, one on the Monday."""
    clock.at = START + 2 * DAY_S + 60
    rig.write(
        beat(CLUSTER, 1, 0, 4, 1, metrics=metrics({"activity": "failed", "value": 1800.0})),
        beat(CLUSTER, 1, 1, 4, 1, metrics=metrics({"activity": "failed", "value": 1800.0})),
        beat(CLUSTER, 1, 2, 10, 5, metrics=metrics({"activity": "failed", "value": 5400.0})),
        beat(OTHER, 2, 2, 3, 1, identity=identity(name="c2", user="bob")),
    )
    rows = [
        listed(CLUSTER, 1, machine("m6i.large", 4, 2, 3.0), machine("g5.xlarge", 1, 2, 7.0), thread_h=10,
               kind="EC2Cluster", tags=[("team", "ml")]),
        listed(OTHER, 2, machine(None, 3, 1, 2.0), thread_h=3, user="bob", quality="estimated", tags=[("x", "y")]),
    ]  # fmt: skip
    costs = costs_of(rig, clock, rows)

    def ask(*by: str, **wanted: Any) -> list[dict[str, Any]]:
        return costs.over("acme", 100, 0, by=by, **wanted).rows

    return ask


def test_by_user_dearest_first(over: Over) -> None:
    ada, bob = over("user")
    assert ada | {"basis": ""} == {
        "user": "ada", "n_clusters": 1, "thread_hours": pytest.approx(10), "machine_hours": pytest.approx(5),
        "dollars": pytest.approx(10), "idle": pytest.approx(4 - 1 - 0.5 + 6 - 4 - 1), "failed": pytest.approx(1.5),
        "quality": "measured", "measured_share": pytest.approx(1), "basis": "",
    }  # fmt: skip
    assert ada["basis"] == "measured: all by machines and prices that are known, at list prices of 2026-01"
    assert (bob["user"], bob["dollars"], bob["failed"]) == ("bob", pytest.approx(2), None)
    assert (bob["quality"], bob["measured_share"]) == ("estimated", 0)


def test_days_and_weeks_go_by_the_thread_time_of_each(over: Over) -> None:
    assert [(row["day"], row["dollars"]) for row in over("day")] == [
        ("2026-11-21", pytest.approx(4)), ("2026-11-22", 0), ("2026-11-23", pytest.approx(6 + 2)),
    ]  # fmt: skip
    saturday = over("day")[0]
    assert (saturday["idle"], saturday["failed"]) == (pytest.approx(4 * 2.5 / 4), pytest.approx(4 * 0.5 / 4))
    assert [(row["week"], row["user"], row["dollars"]) for row in over("user", "week")] == [
        ("2026-11-16", "ada", pytest.approx(4)), ("2026-11-23", "ada", pytest.approx(6)),
        ("2026-11-23", "bob", pytest.approx(2)),
    ]  # fmt: skip
    monday = over("week")[-1]
    assert (monday["measured_share"], monday["quality"]) == (pytest.approx(6 / 8), "estimated")
    assert monday["basis"] == "estimated: 75 % measured, at list prices of 2026-01"


def test_other_keys(over: Over) -> None:
    def by(*keys: str, **wanted: Any) -> list[tuple[Any, ...]]:
        rows = over(*keys, **wanted)
        return [(*(row[column] for key in keys for column in KEYS[key]), round(row["dollars"], 9)) for row in rows]

    assert by("instance_type") == [("g5.xlarge", 7), ("m6i.large", 3), (None, 2)]
    assert by("kind") == [("EC2Cluster", 10), (None, 2)]
    assert by("cluster") == [(1, "c1", 10), (2, "c2", 2)]
    assert by("tag", tag="team") == [("ml", 10), (None, 2)]
    assert by("user", user="bob") == [("bob", 2)]
    gpu = over("instance_type")[0]
    assert (gpu["thread_hours"], gpu["machine_hours"]) == (pytest.approx(2), pytest.approx(1))


def test_between_days_and_in_pages(rig: LakeRig, clock: FakeClock, over: Over) -> None:
    assert [row["dollars"] for row in over("user", between=(at(1), None))] == pytest.approx([6, 2])
    assert [row["dollars"] for row in over("user", between=(None, at(1)))] == pytest.approx([4])
    costs = costs_of(rig, clock, [])
    first = costs.over("acme", 1, 0, by=["day"], between=(at(0), at(9)))
    assert first.more["days"] == ["2026-11-21", "2026-11-23"]
    assert (first.more["currency"], first.more["prices"]) == ("USD", packaged().sources)
    assert first.more["sums"]["thread_hours"] == pytest.approx(13)
    rest = costs.over("acme", 100, 1, by=["day"])
    assert ([row["day"] for row in rest.rows], rest.more) == (["2026-11-22", "2026-11-23"], {})


def test_days_of_several_runs_of_a_plugin_make_what_all_of_them_cost(rig: LakeRig, clock: FakeClock) -> None:
    """10 h of threads, and 2 h more after the plugin began anew, as its totals did."""
    clock.at = START + DAY_S + 60
    rig.write(beat(CLUSTER, 1, 0, 10), beat(CLUSTER, 1, 1, 2, boot=boot_at(START_MS + 1)))
    heard = {"first_received_at": at(0), "last_received_at": at(1)}
    rows = [listed(CLUSTER, 1, machine("m6i.large", 6, 2, 24.0), thread_h=2, **heard)]
    costs = costs_of(rig, clock, rows)
    both = [row["dollars"] for row in costs.over("acme", 9, 0, by=["day"]).rows]
    alone = [costs.over("acme", 9, 0, by=["user"], between=(at(day), at(day))).rows[0]["dollars"] for day in (0, 1)]
    assert both == alone == pytest.approx([20.0, 4.0])


def test_the_days_of_one_run_make_what_it_cost_though_machines_were_there_a_little_longer(
    rig: LakeRig, clock: FakeClock
) -> None:
    clock.at = START + DAY_S + 60
    rig.write(beat(CLUSTER, 1, 0, 6), beat(CLUSTER, 1, 1, 10))
    heard = {"first_received_at": at(0), "last_received_at": at(1)}
    rows = [listed(CLUSTER, 1, machine("m6i.large", 5.1, 2, 10.0), thread_h=10, **heard)]
    costs = costs_of(rig, clock, rows)
    alone = [costs.over("acme", 9, 0, by=["user"], between=(at(day), at(day))).rows[0]["dollars"] for day in (0, 1)]
    assert alone == pytest.approx([6.0, 4.0])


def test_what_was_priced_by_other_prices_is_priced_anew(rig: LakeRig, clock: FakeClock) -> None:
    rig.write(beat(CLUSTER, 1, 0, 20))
    registered = ClusterRow(
        account="acme", id=1, uuid=CLUSTER, started_at=START, first_received_at=START, last_received_at=START,
        totals={"thread_us": 20 * HOUR_US},
    )  # fmt: skip
    known = machine("m6i.large", 10, 2, 5.0) | {"region": "us-east-1", "lifecycle": "on-demand"}
    rows = [listed(CLUSTER, 1, known, thread_h=20, prices=packaged().digest, row=row_as_json(registered))]
    euros = b"{currency: EUR, core_hour: 1, instance_types: {m6i.large: 3}}"
    before = costs_of(rig, clock, rows).over("acme", 9, 0, by=["user"])
    PriceKeeper(rig.objects, clock).set("acme", euros, "mine.yaml")
    after = costs_of(rig, clock, rows).over("acme", 9, 0, by=["user", "instance_type"])
    assert [(found.more["currency"], found.rows[0]["dollars"]) for found in (before, after)] == [
        ("USD", pytest.approx(5)), ("EUR", pytest.approx(30)),
    ]  # fmt: skip
    assert after.rows[0]["basis"].endswith("at prices of account acme")
    assert after.rows[0]["instance_type"] == "m6i.large"


def test_what_the_catalog_lacks_is_estimated_by_its_threads(rig: LakeRig, clock: FakeClock) -> None:
    rig.write(beat(CLUSTER, 1, 0, 10, 4))
    (row,) = costs_of(rig, clock, []).over("acme", 9, 0, by=["user"]).rows
    thread_hour = packaged().at(START).thread_hour
    assert (row["dollars"], row["idle"]) == (pytest.approx(10 * thread_hour), pytest.approx(6 * thread_hour))
    assert (row["machine_hours"], row["quality"]) == (None, "estimated")


def test_without_a_worker_nothing_is_known_and_without_a_cluster_there_is_nothing(
    rig: LakeRig, clock: FakeClock
) -> None:
    nothing = costs_of(rig, clock, []).over("acme", 9, 0, by=["user"])
    assert (nothing.rows, nothing.more["sums"]) == ([], dict.fromkeys(DOLLARS))
    rig.write(beat(CLUSTER, 1, 0, 0))
    rows = [listed(CLUSTER, 1, thread_h=0, quality="unknown")]
    (row,) = costs_of(rig, clock, rows).over("acme", 9, 0, by=["user"]).rows
    assert (row["dollars"], row["idle"], row["failed"], row["measured_share"]) == (None, None, None, None)
    assert (row["n_clusters"], row["quality"], row["basis"]) == (1, "unknown", "unknown: no worker has been seen")


def test_a_day_that_offered_more_than_the_catalog_knows_costs_no_more_than_the_cluster(
    rig: LakeRig, clock: FakeClock
) -> None:
    rig.write(beat(CLUSTER, 1, 0, 20))
    rows = [listed(CLUSTER, 1, machine("m6i.large", 5, 2, 5.0), thread_h=10)]
    (row,) = costs_of(rig, clock, rows).over("acme", 9, 0, by=["user"]).rows
    assert (row["dollars"], row["thread_hours"]) == (pytest.approx(5), pytest.approx(20))


def test_the_record_of_prices_is_what_is_in_force() -> None:
    record = prices_record(packaged(), START)
    assert (record["from"], record["currency"], record["name"]) == ("2026-01-19", "USD", "list prices of 2026-01")
    assert record["regions"]["us-east-1"]["families"]["m6i"] == 0.096
    assert (record["own"], record["instance_types"], record["tables"]) == ([], {}, ["2026-01-19"])


HOURS = st.floats(0, 1e4)
MACHINES = st.lists(
    st.builds(machine, st.sampled_from([None, "m6i.large", "g5.xlarge"]), HOURS, st.integers(0, 9), HOURS), max_size=3
)


def added(
    cluster: str, number: int, user: str, day: int, thread_h: float, computed: float, failed_h: float | None
) -> dict[str, Any]:
    """A row of the roll-up; `computed` in parts of `thread_h`."""
    return {
        "account": "acme", "day": DAY + timedelta(day), "cluster": cluster, "cluster_id": number, "user": user,
        "thread_us": round(thread_h * HOUR_US), "action_us": [("compute", round(computed * thread_h * HOUR_US))],
        "failed_us": None if failed_h is None else round(failed_h * HOUR_US),
    }  # fmt: skip


@st.composite
def lives(draw: st.DrawFn) -> tuple[list[Any], list[dict[str, Any]]]:
    """What three clusters added on up to three days, and what the catalog has of them, or of some."""
    days, rows = list[Any](), list[dict[str, Any]]()
    for number, cluster in enumerate((CLUSTER, OTHER, THIRD), 1):
        user = draw(st.sampled_from(["ada", "bob", None]))
        for day in range(draw(st.integers(0, 3))):
            told = (draw(HOURS), draw(st.floats(0, 2)), draw(st.none() | HOURS))
            days.append(added(cluster, number, user or "", day, *told))
        if draw(st.booleans()):
            quality, kind = draw(st.sampled_from(["measured", "estimated"])), draw(st.sampled_from([None, "Local"]))
            rows.append(
                listed(cluster, number, *draw(MACHINES), thread_h=draw(HOURS), user=user, quality=quality, kind=kind)
            )
    return days, rows


@given(lives())
@settings(max_examples=10, deadline=None)
def test_however_they_are_grouped_dollars_sum_up_to_the_same(life: tuple[list[Any], list[dict[str, Any]]]) -> None:
    days, listed_rows = life
    given = {
        "clusters_daily": pa.Table.from_pylist(days, CLUSTERS_DAILY.schema),
        "catalog": pa.Table.from_pylist(listed_rows, CATALOG.schema),
    }
    groupings = [("cluster", "kind"), ("user",), ("week",), ("user", "day"), ("instance_type",), tuple(KEYS)]
    found = [
        ask_given("costs", given, by=list(by), tag="k", thread_hour=0.05, limit=1000, offset=0).to_pylist()
        for by in groupings
    ]
    sums = [{name: sum(row[name] or 0 for row in rows) for name in DOLLARS} for rows in found]
    for rows, summed in zip(found, sums, strict=True):
        assert summed == pytest.approx(sums[0])
        assert {name: rows[0][f"all_{name}"] or 0 for name in DOLLARS} == pytest.approx(summed) if rows else not days
        for row in rows:
            assert min(row[name] or 0 for name in DOLLARS) >= 0
            assert (row["idle"] or 0) + (row["failed"] or 0) <= (row["dollars"] or 0) * (1 + 1e-9)
            assert row["measured_dollars"] <= (row["dollars"] or 0) * (1 + 1e-9)
    assert sums[0]["thread_hours"] == pytest.approx(sum(day["thread_us"] for day in days) / HOUR_US)
    for known in listed_rows:
        of_it = sum(row["dollars"] or 0 for row in found[0] if row["cluster_id"] == known["cluster_id"])
        assert known["dollars"] is None or of_it <= known["dollars"] * (1 + 1e-9)
