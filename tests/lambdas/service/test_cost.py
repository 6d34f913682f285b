"""What a cluster cost, by hand and for whatever a cluster may tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.cost import Cost, as_record, machine_rows, priced
from daskscope_lambdas.service.price_file import merged, packaged, read_override
from daskscope_lambdas.service.prices import Prices
from daskscope_lambdas.service.usage import Machine, Usage
from daskscope_query.tables.catalog import MACHINE

HOUR_US = 3_600_000_000
GIB = 1 << 30


def row(thread_h: float = 0, compute_h: float = 0, kind: str = "", **totals: Any) -> ClusterRow:
    told = {"thread_us": round(thread_h * HOUR_US), "action_us": {"compute": round(compute_h * HOUR_US)}}
    return ClusterRow(
        account="acme", id=7, uuid="0" * 32, started_at=1.79e9, first_received_at=1.79e9, last_received_at=1.79e9,
        identity={"kind": kind}, totals=told | totals,
    )  # fmt: skip


def machine(hours: float, threads: int = 2, n: int = 1, **changes: Any) -> Machine:
    values: dict[str, Any] = {
        "provider": "aws", "region": "us-east-1", "instance_type": "m6i.large", "lifecycle": "on-demand",
        "cores": 2, "memory_bytes": 8 * GIB, "n_machines": n, "machine_us": round(hours * HOUR_US),
        "thread_us": round(threads * hours * HOUR_US), "gib_hours": 8.0 * hours,
    }  # fmt: skip
    return Machine(**values | changes)


def untold(thread_h: float, gib_h: float) -> Machine:
    return Machine(n_machines=1, machine_us=0, thread_us=round(thread_h * HOUR_US), gib_hours=gib_h)


def own(text: str) -> Prices:
    return merged(packaged(), read_override(text.encode(), "account acme", "mine.yaml"))


def test_machines_whose_kind_and_time_were_told_are_measured():
    usage = Usage(machines=[machine(10, n=4), machine(5, instance_type="g5.xlarge", threads=4)], failed_us=HOUR_US)
    cost = priced(row(thread_h=40, compute_h=29), usage, packaged())
    dollars = 10 * 0.096 + 5 * 1.006
    found = (cost.dollars, cost.idle_dollars, cost.failed_dollars)
    assert found == pytest.approx((dollars, dollars / 4, dollars / 40))
    assert (cost.thread_hours, cost.machine_hours, cost.used_share) == (40, 15, 0.75)
    assert (cost.quality, cost.basis) == (
        "measured",
        "measured: 5 h of 1 g5.xlarge (on demand, us-east-1) at list prices of 2026-01; "
        "10 h of 4 m6i.large (on demand, us-east-1) at list prices of 2026-01",
    )
    assert as_record(cost) == {
        "dollars": cost.dollars, "idle": cost.idle_dollars, "failed": cost.failed_dollars,
        "currency": "USD", "quality": cost.quality, "basis": cost.basis,
    }  # fmt: skip


def test_machines_of_unknown_kinds_are_estimated_by_threads_and_memory():
    cost = priced(row(thread_h=12.4), Usage(machines=[untold(12.4, 48)]), packaged())
    assert cost.dollars == pytest.approx(12.4 * 0.033 + 48 * 0.00375)
    assert (cost.quality, cost.machine_hours, cost.failed_dollars) == ("estimated", None, None)
    assert cost.basis == (
        "estimated: 12.4 thread-hours at $0.033 and 48 GiB-hours at $0.00375: kinds of machine unknown"
    )


def test_one_machine_that_told_nothing_makes_all_of_it_an_estimate():
    cost = priced(row(thread_h=40), Usage(machines=[machine(10), untold(20, 80)]), packaged())
    assert cost.quality == "estimated"
    assert cost.dollars == pytest.approx(10 * 0.096 + 20 * 0.033 + 80 * 0.00375)


def test_machines_of_which_nobody_told_make_all_of_it_an_estimate():
    usage = Usage(machines=[machine(10)])
    cost = priced(row(thread_h=2000, n_threads=200, memory_limit_bytes=800 * GIB), usage, packaged())
    assert cost.dollars == pytest.approx(10 * 0.096 + 1980 * (0.033 + 4 * 0.00375))
    assert cost.quality == "estimated"
    assert cost.basis.startswith("estimated: 1.98e+03 thread-hours at $0.033 and 7.92e+03 GiB-hours at $0.00375: kinds")
    assert [priced(row(thread_h), usage, packaged()).quality for thread_h in (19, 21, 21.1)] == [
        "measured", "measured", "estimated",
    ]  # fmt: skip


def test_a_size_that_no_machine_has_is_no_price():
    for size in ("0xlarge", "9" * 308 + "xlarge", "9" * 400 + "xlarge"):
        odd = machine(10, instance_type=f"m6i.{size}")
        cost = priced(row(20), Usage(machines=[odd]), packaged())
        assert (cost.dollars, cost.quality) == (pytest.approx(10 * (2 * 0.033 + 8 * 0.00375)), "estimated")


def test_a_cluster_that_the_lake_knows_nothing_of_yet_is_estimated_by_its_threads():
    told = priced(row(thread_h=10, n_threads=4, memory_limit_bytes=32 * GIB), None, packaged())
    assert told.dollars == pytest.approx(10 * 0.033 + 80 * 0.00375)
    assert (told.quality, told.machine_hours) == ("estimated", None)
    # Of a cluster that ended nobody knows what memory it had.
    assert priced(row(thread_h=10), None, packaged()).dollars == pytest.approx(10 * 0.096 / 2)


def test_without_a_worker_nothing_is_known():
    scheduler = Usage(machines=[machine(3, threads=0)])
    for cost in (priced(row(), None, packaged()), priced(row(), scheduler, packaged())):
        assert as_record(cost) == {
            "dollars": None, "idle": None, "failed": None, "currency": "USD", "quality": "unknown",
            "basis": "unknown: no worker has been seen",
        }  # fmt: skip


def test_an_own_price_of_a_core_hour_measures_what_has_no_price_of_its_own():
    prices = own("core_hour: 0.02")
    cost = priced(row(thread_h=10), Usage(machines=[untold(10, 40)]), prices)
    assert (cost.dollars, cost.quality) == (pytest.approx(0.2), "measured")
    assert cost.basis == "measured: 10 thread-hours at $0.02, prices of account acme"
    odd = machine(10, instance_type="z9.large")
    assert priced(row(thread_h=20), Usage(machines=[odd, machine(1)]), prices).dollars == pytest.approx(0.4 + 0.096)


def test_a_type_without_a_price_is_estimated_by_its_cores_and_memory():
    odd = machine(10, instance_type="z9.large", lifecycle="spot", cores=4, memory_bytes=16 * GIB)
    cost = priced(row(thread_h=20), Usage(machines=[odd]), packaged())
    assert cost.dollars == pytest.approx(10 * 0.4 * (4 * 0.033 + 16 * 0.00375))
    assert cost.basis == (
        "estimated: 10 h of 1 z9.large (spot, us-east-1), which list prices of 2026-01 lack, by 4 cores and 16 GiB"
    )


def test_spot_is_measured_once_somebody_says_what_it_costs():
    usage = Usage(machines=[machine(10, lifecycle="spot")])
    guessed, said = (priced(row(20), usage, prices) for prices in (packaged(), own("spot_factor: 0.3")))
    assert (guessed.dollars, guessed.quality) == (pytest.approx(10 * 0.096 * 0.4), "estimated")
    assert guessed.basis.endswith("at list prices of 2026-01, spot taken as 0.4 of on demand")
    assert (said.dollars, said.quality) == (pytest.approx(10 * 0.096 * 0.3), "measured")


def test_pods_are_a_part_of_their_machines():
    pods = machine(10, threads=2, cores=16, memory_bytes=64 * GIB, instance_type="m6i.4xlarge")
    cost = priced(row(20, kind="KubeCluster"), Usage(machines=[pods]), packaged())
    assert cost.dollars == pytest.approx(10 * 0.768 / 8)
    assert cost.basis.endswith("at list prices of 2026-01, pods priced as 12.5 % of their machines")
    assert cost.quality == "estimated"
    whole = priced(row(20, kind="EC2Cluster"), Usage(machines=[pods]), packaged())
    assert whole.dollars == pytest.approx(10 * 0.768)


def test_another_currency_is_said():
    cost = priced(row(thread_h=10), None, own("{currency: EUR, core_hour: 0.02}"))
    assert (cost.dollars, cost.currency) == (pytest.approx(0.2), "EUR")
    assert cost.basis == "measured: 10 thread-hours at 0.02 EUR, prices of account acme"


def test_more_kinds_than_a_sentence_holds_are_counted():
    many = [machine(n, instance_type=f"m6i.{n}xlarge") for n in (2, 4, 8, 12)]
    assert priced(row(52), Usage(machines=many), packaged()).basis.endswith("; and 2 kinds of machine more")


def test_the_catalog_keeps_machines_as_they_are():
    cost = priced(row(30), Usage(machines=[machine(10), untold(10, 40)]), packaged())
    assert [set(each) for each in machine_rows(cost)] == [{field.name for field in MACHINE}] * 2
    assert sum(each["dollars"] for each in machine_rows(cost)) == pytest.approx(cost.dollars)


HOURS = st.floats(0, 1e5)
MACHINES = st.builds(
    machine,
    HOURS,
    threads=st.integers(0, 128),
    instance_type=st.sampled_from([None, "m6i.large", "g5.xlarge", "z9.large"]),
    region=st.sampled_from([None, "us-east-1", "eu-west-1"]),
    lifecycle=st.sampled_from([None, "on-demand", "spot"]),
    cores=st.sampled_from([None, 2, 64]),
)
USAGES = (
    st.builds(Usage, machines=st.lists(MACHINES, max_size=4), failed_us=st.none() | st.integers(0, 10**15)) | st.none()
)
ROWS = st.builds(row, HOURS, HOURS, st.sampled_from(["", "KubeCluster"]))
PRICES = st.sampled_from([packaged(), own("core_hour: 0.02"), own("{spot_factor: 0, instance_types: {m6i.large: 3}}")])


@given(ROWS, USAGES, PRICES)
def test_parts_are_parts(found: ClusterRow, usage: Usage | None, prices: Prices):
    cost = priced(found, usage, prices)
    assert (cost.dollars is None) == (cost.quality == "unknown") == (cost.idle_dollars is None)
    if cost.dollars is None or cost.idle_dollars is None:
        return
    assert cost.dollars >= 0
    assert cost.idle_dollars >= 0
    assert (cost.failed_dollars or 0) >= 0
    assert cost.idle_dollars + (cost.failed_dollars or 0) <= cost.dollars * (1 + 1e-9)
    assert sum(each.dollars for each in cost.machines) == pytest.approx(cost.dollars)
    assert cost.used_share is not None
    assert 0 <= cost.used_share <= 1


@given(ROWS, USAGES, st.floats(0.01, 100))
def test_dollars_scale_with_prices(found: ClusterRow, usage: Usage | None, factor: float):
    def scaled(by: float) -> Prices:
        table = packaged().tables[0]
        regions = {
            name: replace(
                region,
                families={family: price * by for family, price in region.families.items()},
                instance_types={kind: price * by for kind, price in region.instance_types.items()},
            )
            for name, region in table.regions.items()
        }
        dearer = replace(table, core_hour=table.core_hour * by, gib_hour=table.gib_hour * by, regions=regions)
        return replace(packaged(), tables=(dearer,))

    def dollars(cost: Cost) -> list[float]:
        return [cost.dollars or 0, cost.idle_dollars or 0, cost.failed_dollars or 0]

    once, more = dollars(priced(found, usage, scaled(1))), dollars(priced(found, usage, scaled(factor)))
    assert more == pytest.approx([factor * each for each in once])
