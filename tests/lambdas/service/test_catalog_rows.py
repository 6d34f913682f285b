from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.catalog_rows import (
    COSTS,
    LISTED,
    cost_columns,
    cost_record,
    costs_since,
    grown,
    is_newer,
    registry_columns,
    row_as_json,
    row_of_json,
    usage_of,
)
from daskscope_lambdas.service.cost import as_record, priced
from daskscope_lambdas.service.price_file import packaged
from daskscope_lambdas.service.usage import Machine, Usage
from daskscope_query import files
from daskscope_query.tables import CATALOG

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
SECONDS = st.floats(0, 4e9, allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e300, 1e300) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
COUNTS = st.integers(0, 2**60)
IDENTITY = st.fixed_dictionaries(
    {},
    optional={"name": TEXT, "user": TEXT, "host": TEXT, "kind": TEXT, "tags": st.dictionaries(TEXT, TEXT, max_size=3),
              "versions": st.dictionaries(TEXT, TEXT, max_size=2), "started_at_ms": st.integers(0, 2**42), "odd": JSON},
)  # fmt: skip
TOTALS = st.fixed_dictionaries(
    {},
    optional={"peak_workers": st.integers(0, 2**31 - 1), "peak_memory_bytes": COUNTS, "n_tasks": COUNTS,
              "n_tasks_erred": COUNTS, "thread_us": COUNTS, "action_us": st.dictionaries(TEXT, COUNTS, max_size=3),
              "odd": JSON},
)  # fmt: skip
ROWS = st.builds(
    ClusterRow, account=st.just("acme"), id=st.integers(1, 2**53), uuid=st.uuids().map(lambda each: each.hex),
    started_at=st.floats(-1e12, 1e18, allow_nan=False), first_received_at=SECONDS, last_received_at=SECONDS, boot=TEXT,
    seq=st.integers(-1, 2**53), made_at=SECONDS, next_s=SECONDS, phase=st.sampled_from(["running", "closed"]),
    reason=st.none() | TEXT, identity=IDENTITY, totals=TOTALS, lost=st.dictionaries(TEXT, COUNTS, max_size=2),
    uptime_s=SECONDS, skew_s=st.none() | st.floats(-1e9, 1e9), skew_of=TEXT, identity_of=TEXT,
    close_asked_at=st.none() | SECONDS, close_asked_by=st.none() | TEXT, close_asked_reason=st.none() | TEXT,
)  # fmt: skip
MACHINES = st.builds(
    Machine, provider=st.none() | TEXT, region=st.none() | TEXT, instance_type=st.none() | TEXT,
    lifecycle=st.none() | TEXT, cores=st.none() | st.integers(1, 512), memory_bytes=st.none() | COUNTS,
    n_machines=st.integers(1, 1000), machine_us=COUNTS, thread_us=st.integers(1, 2**60), gib_hours=st.floats(0, 1e9),
)  # fmt: skip
USAGES = st.builds(Usage, machines=st.lists(MACHINES, max_size=3), failed_us=st.none() | COUNTS)


@given(ROWS)
def test_a_row_comes_back_whole(row: ClusterRow) -> None:
    assert row_of_json(row_as_json(row)) == row


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"account": "acme"}', "null", '{"id": 1, "odd": 2}'])
def test_what_is_no_row_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        row_of_json(text)


@settings(max_examples=40)
@given(ROWS, USAGES, st.none() | SECONDS)
def test_all_that_is_kept_comes_back_out_of_a_file(row: ClusterRow, usage: Usage, usage_at: float | None) -> None:
    cost = priced(row, usage, packaged())
    columns = registry_columns(row) | {"row": row_as_json(row)} | cost_columns(cost, usage, usage_at, "d1")
    assert columns.keys() == set(CATALOG.schema.names)
    body = files.encode(CATALOG, pa.Table.from_pylist([columns], CATALOG.schema), for_long=False)
    (back,) = files.decode(body, CATALOG.schema).to_pylist(maps_as_pydicts="lossy")
    assert row_of_json(back["row"]) == row
    again = usage_of(back["machines"], back["failed_us"])
    assert (list(again.machines), again.failed_us) == (list(usage.machines), usage.failed_us)
    assert cost_record(back) == as_record(cost)
    assert (back["cluster"], back["cluster_id"], back["tags"]) == (row.uuid, row.id, row.identity.get("tags", {}))
    assert back["prices"] == "d1"
    (listed,) = files.decode(body, CATALOG.schema, LISTED).to_pylist(maps_as_pydicts="lossy")
    assert {**listed, "row": back["row"], "machines": back["machines"]} == back
    assert not is_newer(row, listed)
    assert is_newer(replace(row, last_received_at=row.last_received_at + 0.01), listed)
    assert is_newer(replace(row, boot=f"{row.boot}0"), listed)


def test_a_cost_grows_with_its_thread_time() -> None:
    hour_us = 3_600_000_000
    machine = Machine(instance_type="m6i.large", region="us-east-1", lifecycle="on-demand", cores=2, n_machines=1,
                      machine_us=hour_us, thread_us=2 * hour_us, gib_hours=8.0)  # fmt: skip
    usage = Usage(machines=[machine], failed_us=hour_us // 2)

    def at(hours: int, computed: int) -> ClusterRow:
        totals = {"thread_us": 2 * hours * hour_us, "action_us": {"compute": computed * hour_us}}
        return ClusterRow(account="acme", id=1, uuid="c" * 32, started_at=0.0, first_received_at=0.0,
                          last_received_at=0.0, totals=totals)  # fmt: skip

    first = at(1, 0)
    before = registry_columns(first) | cost_columns(priced(first, usage, packaged()), usage, 5.0, "old")
    assert (before["dollars"], before["idle_dollars"]) == (0.096, pytest.approx(0.096 * 0.75))
    after = costs_since(at(10, 15), before, packaged())
    assert (after["dollars"], after["idle_dollars"]) == (pytest.approx(0.96), pytest.approx(0.96 * (1 - 0.75 - 0.025)))
    assert after["failed_dollars"] == before["failed_dollars"], "what has failed since nobody has told"
    assert after["basis"].startswith("measured: 10 h of 1 m6i.large")
    assert after["machines"][0]["machine_us"] == 10 * hour_us
    assert after["usage_at"] == before["usage_at"]
    assert after.keys() == set(COSTS)
    assert [grown(before | {"thread_us": told}, 2 * hour_us) for told in (0, 2 * hour_us, 3 * hour_us)] == 3 * [usage]
    assert grown(before | {"thread_us": 1}, 2**62).machines[0].machine_us == 2**63 - 1
