import io
from datetime import UTC, date, datetime, timedelta
from importlib import resources
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daskscope import wire
from daskscope.testing import (
    CLUSTER,
    START_MS,
    boot_at,
    death,
    environment,
    event,
    exception,
    groups,
    identity,
    logs,
    member,
    metrics,
    profile,
    span,
    tasks,
    workers,
)
from daskscope_query import lake, layout
from daskscope_query.lake import Lake, MovedError
from daskscope_query.tables import GROUPS, ROLLUPS, TABLES
from tests.query.lake_rig import DAY, DAY_S, START, LakeRig, envelope

OTHER = "0" * 31 + "2"
TOMORROW = DAY + timedelta(1)
QUERIES = (
    "computations", "groups", "exceptions", "exception_kinds", "events", "workers", "samples", "prefixes",
    "exceptions_by_kind", "members", "environments", "deaths", "logs", "spans", "metrics", "metrics_by_prefix", "tasks",
    "profile", "profile_totals", "worker_samples",
)  # fmt: skip
OF_ONE_CLUSTER = (
    "computations", "groups", "exception_kinds", "events", "workers", "samples", "members", "environments", "deaths",
    "logs", "spans", "metrics", "metrics_by_prefix", "tasks", "profile", "worker_samples",
)  # fmt: skip
ONE_ROW = ("profile_totals",)
"""Sums, also of nothing."""
EVERYTHING: dict[str, Any] = {
    "groups": groups({"no": 0, "span": span().id}), "exceptions": [exception()], "events": [event()],
    "members": [member(environment=0)], "environments": [environment()], "deaths": [death()],
    "logs": logs({"no": 0}), "spans": [span()], "metrics": metrics({}), "tasks": tasks(2), "profiles": [profile()],
}  # fmt: skip


def _params(query: str) -> dict[str, Any]:
    one = {"worker": "tcp://127.0.0.1:40001"} if query == "worker_samples" else {}
    return {"cluster": CLUSTER, **one} if query in (*OF_ONE_CLUSTER, *ONE_ROW) else {}


@pytest.mark.parametrize("query", QUERIES)
def test_an_empty_lake_gives_no_rows_and_the_same_columns(rig: LakeRig, query: str) -> None:
    empty = rig.ask(query, **_params(query))
    rig.write(envelope(**EVERYTHING))
    full = rig.ask(query, **_params(query))
    assert full.rows.num_rows > 0 or query == "computations"
    assert empty.rows.num_rows == (1 if query in ONE_ROW else 0)
    assert empty.skipped == []
    assert empty.as_of is None
    assert empty.rows.schema.equals(full.rows.schema)


def test_a_lake_without_a_folder_is_empty(tmp_path_factory: pytest.TempPathFactory) -> None:
    nowhere = Lake(str(tmp_path_factory.mktemp("none") / "nowhere"), None)
    assert nowhere.ask("exceptions", account="acme", days=(DAY, DAY)).records() == []


def test_as_of_is_the_latest_receipt_of_the_cluster(rig: LakeRig) -> None:
    rig.write(envelope(seq=0), envelope(seq=1, received_at=START + 10.25))
    rig.write(envelope(cluster=OTHER, received_at=START + 900))
    assert rig.ask("groups", cluster=CLUSTER).as_of == datetime(2026, 11, 21, 8, 0, 10, 250_000, UTC)
    assert rig.ask("exceptions").as_of == datetime(2026, 11, 21, 8, 15, tzinfo=UTC)


def test_repeats_count_once_across_files_and_days(rig: LakeRig) -> None:
    once = envelope(exceptions=[exception()], events=[event()])
    rig.write(once, once)
    rig.write(once)
    rig.write(envelope(exceptions=[exception()], events=[event()], received_at=START + DAY_S))
    for query in ("exceptions", "events", "samples"):
        assert len(rig.records(query, cluster=CLUSTER, last=TOMORROW)) == 1, query
    assert rig.ask("workers", cluster=CLUSTER, last=TOMORROW).rows.num_rows == 2


def test_the_newest_snapshot_wins_in_whatever_order_and_on_whatever_day_it_came(rig: LakeRig) -> None:
    rig.write(envelope(seq=5, groups=groups({"no": 0, "n_tasks": 50}), received_at=START))
    rig.write(envelope(seq=3, groups=groups({"no": 0, "n_tasks": 30}), received_at=START + DAY_S))
    rig.write(envelope(seq=4, groups=groups({"no": 0, "n_tasks": 40}), received_at=START - 1))
    assert [row["n_tasks"] for row in rig.records("groups", cluster=CLUSTER, last=TOMORROW)] == [50]


def test_numbers_of_two_boots_are_two_things(rig: LakeRig) -> None:
    rig.write(envelope(events=[event(action="a")]), envelope(boot=boot_at(START_MS + 1), events=[event(action="b")]))
    assert {row["action"] for row in rig.records("events", cluster=CLUSTER)} == {"a", "b"}


@pytest.mark.parametrize("sealed", [False, True])
def test_accounts_never_mix(rig: LakeRig, sealed: bool) -> None:
    """Both use the same UUID, numbers and file, which ingest would refuse: the wall must not lean on that."""
    mine: dict[str, Any] = {"exceptions": [exception(text="mine")], "groups": groups({"no": 0, "prefix": "mine"})}
    theirs: dict[str, Any] = {
        "exceptions": [exception(text="theirs")],
        "groups": groups({"no": 0, "prefix": "theirs"}),
        "profiles": [profile(count=[500, 500])],
    }
    rig.write(envelope(**EVERYTHING | mine), envelope("globex", 7, **EVERYTHING | theirs))
    if sealed:
        # Worst case: a file of all accounts under the path of one.
        for key in rig.listed("open/"):
            table = key.split("/")[1]
            rig.objects.put_new(layout.sealed_key(table, "acme", DAY, 0), rig.objects.get(key))
            rig.objects.delete(key)
        rig.seals.day = DAY
    for query in (*OF_ONE_CLUSTER, "exceptions"):
        rows = rig.records(query, cluster=CLUSTER)
        assert {row.get("account", "acme") for row in rows} <= {"acme"}, query
    assert [row["text"] for row in rig.records("exceptions")] == ["mine"]
    assert [row["prefix"] for row in rig.records("groups", cluster=CLUSTER)] == ["mine"]
    assert [row["count"] for row in rig.records("profile", cluster=CLUSTER)] == [30, 10]
    assert rig.records("exceptions", account="nobody") == []
    if not sealed:
        assert [row["prefix"] for row in rig.records("prefixes")] == ["mine"]
        assert [row["prefix"] for row in rig.records("prefixes", account="globex")] == ["theirs"]


def _flip(body: bytes) -> bytes:
    """One bit of the data of `seq`: without a checksum it would be another number."""
    group = pq.ParquetFile(io.BytesIO(body)).metadata.row_group(0)
    seq = next(c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == "seq")
    last = seq.data_page_offset + seq.total_compressed_size - 1
    return body[:last] + bytes([body[last] ^ 1]) + body[last + 1 :]


FLAWS = {
    "empty": lambda body: b"",
    "garbage": lambda body: b"no parquet at all" * 9,
    "truncated": lambda body: body[: len(body) // 2],
    "flipped": _flip,
    "hole": lambda body: body[:4] + bytes(len(body) // 2) + body[4 + len(body) // 2 :],
}


@pytest.mark.parametrize("flaw", FLAWS)
@pytest.mark.parametrize("table", ["exceptions", "samples"])
def test_a_corrupt_file_is_named_and_the_rest_answers(rig: LakeRig, flaw: str, table: str) -> None:
    rig.write(envelope(seq=0, exceptions=[exception(no=0)]))
    rig.write(envelope(seq=1, exceptions=[exception(no=1)]), name="bad")
    rig.write(envelope(seq=2, exceptions=[exception(no=2)]))
    key = layout.open_key(table, DAY, "bad")
    path = rig.root / key
    path.chmod(0o600)
    path.write_bytes(FLAWS[flaw](path.read_bytes()))
    query = "exceptions" if table == "exceptions" else "samples"
    answer = rig.ask(query, cluster=CLUSTER)
    assert answer.skipped == [key]
    assert sorted(row["seq"] for row in answer.records()) == [0, 2]


def test_a_flaw_in_what_only_tells_the_age_is_not_held_against_the_answer(rig: LakeRig) -> None:
    rig.write(envelope(exceptions=[exception()]), name="bad")
    (rig.root / layout.open_key("samples", DAY, "bad")).write_bytes(b"")
    answer = rig.ask("exceptions")
    assert (answer.rows.num_rows, answer.skipped, answer.as_of) == (1, [], None)


def test_a_corrupt_file_in_an_open_day_of_a_roll_up_is_named(rig: LakeRig) -> None:
    rig.write(envelope(groups=groups({"no": 0})))
    rig.objects.put_new(layout.open_key("groups", DAY, "bad"), b"bad")
    answer = rig.ask("prefixes")
    assert answer.skipped == [layout.open_key("groups", DAY, "bad")]
    assert [row["n_tasks"] for row in answer.records()] == [4]


def test_a_file_of_an_older_version_lacks_a_column_and_one_of_a_newer_has_more(rig: LakeRig) -> None:
    rig.write(envelope(groups=groups({"no": 0})), name="plain")
    plain = pq.read_table(rig.root / layout.open_key("groups", DAY, "plain"))
    older, newer = plain.drop_columns(["span", "types"]), plain.append_column("colour", pa.array(["red"]))
    for no, table in ((1, older), (2, newer)):
        place = table.schema.get_field_index("no")
        renumbered = table.set_column(place, GROUPS.schema.field("no"), pa.array([no], pa.int32()))
        pq.write_table(renumbered, rig.root / layout.open_key("groups", DAY, f"version-{no}"))
    answer = rig.ask("groups", cluster=CLUSTER)
    assert answer.skipped == []
    assert answer.rows.num_rows == 3
    assert [(row["no"], row["types"]) for row in answer.records()] == [(0, ["int"]), (1, None), (2, ["int"])]


SINCE_VERSION_2 = {
    "clusters": ["kind", "python_path"],
    "samples": [
        "desired_workers", "adaptive_minimum", "adaptive_maximum", "n_workers_lost", "scheduler_cpu_pct",
        "scheduler_memory_bytes", "scheduler_loop_ms", "cpu_pct", "net_read_kib_s", "net_write_kib_s",
        "disk_read_kib_s", "disk_write_kib_s", "worker_loop_ms", "gpu_pct", "gpu_memory_mib", "self_cpu_us",
        "self_slowest_us", "self_messages", "self_bytes", "self_failed_tries", "self_detail",
        "idle_since",
    ],
    "workers": ["gpu_pct", "gpu_memory_mib"],
    "exceptions": ["origin"],
}  # fmt: skip
"""Columns that files of version 1 lack; they lack the other tables altogether."""


def _age(rig: LakeRig) -> None:
    """The lake as version 1 would have written it."""
    for key in rig.listed("open/"):
        table = key.split("/")[1]
        path = rig.root / key
        if table in ("members", "deaths", "spans", "fine_metrics", "tasks", "logs", "profiles"):
            path.unlink()
        elif table in SINCE_VERSION_2:
            older = pq.read_table(path).drop_columns(SINCE_VERSION_2[table])
            path.chmod(0o600)
            pq.write_table(older, path)


def test_a_lake_of_version_1_answers_as_before(rig: LakeRig) -> None:
    rig.write(envelope(**EVERYTHING))
    _age(rig)
    before = ("groups", "exceptions", "exception_kinds", "events", "workers", "samples", "prefixes")
    for query in before:
        answer = rig.ask(query, **_params(query))
        assert (answer.rows.num_rows > 0, answer.skipped) == (True, []), query
    for query in set(QUERIES) - {*before, "computations", "exceptions_by_kind", *ONE_ROW}:
        assert rig.records(query, cluster=CLUSTER) == [], query
    assert rig.records("exceptions", cluster=CLUSTER, origin="user")[0]["origin"] == "user"
    (sample,) = rig.records("samples", cluster=CLUSTER)
    assert (sample["n_workers"], sample["cpu_pct"], sample["self_bytes"]) == (2, None, None)
    rig.write(envelope(seq=1))
    old, new = rig.records("samples", cluster=CLUSTER)
    assert (old["cpu_pct"], new["cpu_pct"]) == (None, 300)


class Leaving(Lake):
    """A lake of which one file goes away between the first listing and reading."""

    leaving: str | None = None

    def keys(self, table: str, account: str, first: date, last: date) -> list[str]:
        found = super().keys(table, account, first, last)
        if self.leaving:
            found.append(self.leaving)
            self.leaving = None
        return found


def test_a_sealed_file_that_went_away_is_listed_again(rig: LakeRig) -> None:
    rig.write(envelope(exceptions=[exception()], received_at=START + DAY_S))
    leaving = Leaving(str(rig.root), DAY)
    leaving.leaving = layout.sealed_key("samples", "acme", TOMORROW, 9)
    answer = leaving.ask("exceptions", account="acme", days=(DAY, TOMORROW))
    assert (answer.rows.num_rows, answer.skipped) == (1, [])


def test_an_open_file_that_went_away_tells_that_the_boundary_moved(rig: LakeRig) -> None:
    rig.write(envelope(exceptions=[exception()]))
    leaving = Leaving(str(rig.root), None)
    leaving.leaving = layout.open_key("samples", DAY, "gone")
    with pytest.raises(MovedError, match=r"open/samples/.*gone.parquet is gone"):
        leaving.ask("exceptions", account="acme", days=(DAY, TOMORROW))


def test_sealed_days_are_read_from_sealed_files_alone(rig: LakeRig) -> None:
    rig.write(envelope(events=[event()]))
    rig.seals.day = DAY
    assert rig.records("events", cluster=CLUSTER, last=TOMORROW) == []


def test_exceptions_by_user_cluster_and_time(rig: LakeRig) -> None:
    bob = identity(user="bob")
    rig.write(
        envelope(exceptions=[exception(no=0, last_ms=START_MS), exception(no=1, last_ms=START_MS + 5_000)]),
        envelope(
            cluster=OTHER,
            cluster_id=2,
            identity=bob,
            exceptions=[exception(no=0, last_ms=START_MS + 3_000)],
        ),
    )
    found = [(row["user"], row["no"]) for row in rig.records("exceptions")]
    assert found == [("ada", 1), ("bob", 0), ("ada", 0)]
    assert [row["user"] for row in rig.records("exceptions", user="bob")] == ["bob"]
    assert [row["no"] for row in rig.records("exceptions", cluster=CLUSTER)] == [1, 0]
    since = datetime.fromtimestamp(START + 3, UTC)
    assert [(r["user"], r["no"]) for r in rig.records("exceptions", since=since)] == [("ada", 1), ("bob", 0)]
    assert [(r["user"], r["no"]) for r in rig.records("exceptions", limit=1, offset=1)] == [("bob", 0)]


def test_the_user_is_known_from_an_earlier_day(rig: LakeRig) -> None:
    rig.write(envelope(seq=0))
    rig.write(envelope(seq=9_000, received_at=START + DAY_S, exceptions=[exception()]))
    assert [row["user"] for row in rig.records("exceptions", first=TOMORROW, last=TOMORROW)] == ["ada"]


def test_samples_are_at_most_600_points_and_keep_the_greatest_memory(rig: LakeRig) -> None:
    many = [
        envelope(seq=n, totals=wire.Totals(n_workers=n, memory_bytes=10**9 if n == 777 else n), workers=workers([]))
        for n in range(2_000)
    ]
    rig.write(*many)
    rows = rig.records("samples", cluster=CLUSTER)
    assert 500 < len(rows) <= 600
    assert max(row["memory_bytes"] for row in rows) == 10**9
    assert rows[-1]["n_workers"] == 1_999
    assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows)


def test_workers_last_values_and_peaks(rig: LakeRig) -> None:
    rig.write(
        envelope(seq=0, workers=workers(["a", "b"], memory_mib=[100, 900], cpu_pct=[10, 50])),
        envelope(seq=1, workers=workers(["a", "b"], memory_mib=[700, 800], cpu_pct=[20, 70])),
        envelope(seq=2, workers=workers(["a"], memory_mib=[300], cpu_pct=[60], status=["paused"])),
    )
    a, b = rig.records("workers", cluster=CLUSTER)
    assert (a["address"], a["memory_bytes"], a["peak_memory_bytes"]) == ("a", 300 << 20, 700 << 20)
    assert (a["status"], a["gone"], a["mean_cpu_pct"], a["cpu_pct"]) == ("paused", False, 30.0, 60)
    assert (b["gone"], b["last_at"] - b["first_at"]) == (True, timedelta(seconds=10))


def test_workers_are_not_gone_for_a_message_that_tells_of_none(rig: LakeRig) -> None:
    brief = {"workers": workers([]), "itself": wire.Itself(detail=5)}
    rig.write(
        envelope(seq=0, workers=workers(["a", "b"])),
        envelope(seq=1, workers=workers(["a"])),
        envelope(seq=2, totals=wire.Totals(n_workers=1), **brief),
    )
    assert [worker["gone"] for worker in rig.records("workers", cluster=CLUSTER)] == [False, True]
    rig.write(envelope(seq=3, totals=wire.Totals(n_workers=0), **brief))
    assert [worker["gone"] for worker in rig.records("workers", cluster=CLUSTER)] == [True, True]


def test_computations_fail_with_their_exceptions(rig: LakeRig) -> None:
    rig.write(
        envelope(
            computations=[wire.Computation(no=n, start_ms=START_MS + n, stop_ms=START_MS + 9) for n in range(3)],
            groups=groups({"no": 0, "computation": 0}, {"no": 1, "computation": 1}, {"no": 2, "computation": None}),
            exceptions=[exception(no=0, group=1), exception(no=1, group=2), exception(no=2, group=None)],
        )
    )
    rows = rig.records("computations", cluster=CLUSTER)
    assert [(row["no"], row["failed"]) for row in rows] == [(2, False), (1, True), (0, False)]
    assert [row["no"] for row in rig.records("computations", cluster=CLUSTER, limit=1, offset=2)] == [0]


def test_groups_name_what_they_depend_on(rig: LakeRig) -> None:
    rig.write(envelope(seq=0, groups=groups({"no": 0, "name": "read"})))
    rig.write(envelope(seq=1, groups=groups({"no": 1, "name": "sum", "dependencies": [0], "computation": 4})))
    read, total = rig.records("groups", cluster=CLUSTER)
    assert (read["dependencies"], total["dependencies"]) == ([], ["read"])
    assert total["action_us"] == {"compute": 4_000_000}
    narrowed = rig.records("groups", cluster=CLUSTER, computations=[f"{boot_at(START_MS)}/4"])
    assert [row["dependencies"] for row in narrowed] == [["read"]]


def test_a_days_share_of_a_group_is_what_the_day_added(rig: LakeRig) -> None:
    rig.write(envelope(seq=0, groups=groups({"no": 0, "n_tasks": 4, "action_us": {"compute": 10}})))
    rig.write(
        envelope(
            seq=1,
            received_at=START + DAY_S,
            groups=groups({"no": 0, "n_tasks": 10, "action_us": {"compute": 30, "transfer": 5}}),
        ),
        # Came late: the first day has it as new already.
        envelope(
            seq=0, received_at=START + DAY_S + 1, groups=groups({"no": 0, "n_tasks": 4, "action_us": {"compute": 10}})
        ),
    )
    assert [row["n_tasks"] for row in rig.records("prefixes", first=TOMORROW, last=TOMORROW)] == [6]
    both = rig.records("prefixes", last=TOMORROW)
    assert [(row["n_tasks"], row["action_us"]) for row in both] == [(10, {"compute": 30, "transfer": 5})]


def test_exceptions_by_kind_count_a_repeat_on_another_day_once(rig: LakeRig) -> None:
    family = exception(count=3)
    rig.write(envelope(seq=0, exceptions=[family]))
    rig.write(envelope(seq=0, exceptions=[family], received_at=START + DAY_S))
    rig.write(envelope(seq=1, exceptions=[exception(no=1, count=2)], received_at=START + DAY_S))
    kinds = rig.records("exceptions_by_kind", last=TOMORROW)
    assert [(kind["text"], kind["count"], kind["users"]) for kind in kinds] == [("no such column", 5, ["ada"])]


def test_a_query_refuses_a_parameter_it_has_not(rig: LakeRig) -> None:
    with pytest.raises(TypeError, match="no parameter colour; it has cluster"):
        rig.ask("workers", cluster=CLUSTER, colour="red")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_parquet('{path}')",
        "SELECT * FROM '{path}'",
        "SELECT * FROM read_text('/etc/hostname')",
        "COPY (SELECT 1) TO '{path}.csv'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET threads = 8",
    ],
)
def test_sql_reaches_no_file_and_no_setting(rig: LakeRig, sql: str) -> None:
    rig.write(envelope(events=[event()]))
    path = rig.root / layout.open_key("events", DAY, "batch-1")
    query = lake._Query(sql.format(path=path), ())
    scope = lake._Scope("acme", DAY, DAY)
    with pytest.raises(duckdb.Error, match=r"disabled|locked|not allowed|cannot"):
        rig.lake()._answer(query, scope, {})


def test_every_query_says_what_it_reads() -> None:
    names = [path.name.removesuffix(".sql") for path in resources.files("daskscope_query").joinpath("sql").iterdir()]
    assert {*QUERIES, *ROLLUPS, "group_names"} == set(names)
    for name in names:
        for read in lake._query(name).reads:
            assert read.removesuffix("_before") in {*TABLES, *ROLLUPS}, name
