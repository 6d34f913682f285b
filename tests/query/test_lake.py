import io
from datetime import UTC, date, datetime
from importlib import resources
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from daskscope.testing import (
    CLUSTER,
    START_MS,
    boot_at,
    death,
    environment,
    event,
    exception,
    groups,
    logs,
    member,
    metrics,
    profile,
    span,
    tasks,
)
from daskscope_query import layout, questions, session
from daskscope_query.lake import Lake, MovedError
from daskscope_query.tables import GROUPS, ROLLUPS, TABLES
from tests.query.lake_rig import DAY, DAY_S, OTHER, START, TOMORROW, LakeRig, envelope

QUERIES = (
    "computations", "groups", "exceptions", "exception_kinds", "events", "workers", "samples", "prefixes",
    "families", "members", "environments", "deaths", "logs", "spans", "metrics", "metrics_by_prefix", "tasks",
    "profile", "profile_totals", "worker_samples", "completeness", "computation_prefixes", "computation_page",
    "code_summary", "cluster_prefixes", "machines", "team_deaths", "team_events",
)  # fmt: skip
OF_ONE_CLUSTER = (
    "computations", "groups", "exception_kinds", "events", "workers", "samples", "members", "environments", "deaths",
    "logs", "spans", "metrics", "metrics_by_prefix", "tasks", "profile", "worker_samples", "completeness",
    "computation_prefixes", "cluster_prefixes", "machines",
)  # fmt: skip
ELSEWHERE = ("group_names", "family_tracebacks", "code", "code_clusters", "computation_sums", "hardware", "clusters",
             "closest_clusters", "usage", "costs", "savings", "audit", "run_exceptions", "run_tasks")  # fmt: skip
"""Asked with what another answered: see the tests of the services that ask them."""
OF_A_TEAM = ("families", "team_deaths", "team_events")
ONE_ROW = ("profile_totals", "code_summary")
"""Sums, also of nothing."""
EVERYTHING: dict[str, Any] = {
    "groups": groups({"no": 0, "span": span().id}), "exceptions": [exception()], "events": [event()],
    "members": [member(environment=0)], "environments": [environment()], "deaths": [death()],
    "logs": logs({"no": 0}), "spans": [span()], "metrics": metrics({}), "tasks": tasks(2), "profiles": [profile()],
}  # fmt: skip


def _params(query: str) -> dict[str, Any]:
    one = {"worker": "tcp://127.0.0.1:40001"} if query == "worker_samples" else {}
    return {"cluster": CLUSTER, **one} if query in (*OF_ONE_CLUSTER, "profile_totals") else {}


@pytest.mark.parametrize("query", QUERIES)
def test_an_empty_lake_gives_no_rows_and_the_same_columns(rig: LakeRig, query: str) -> None:
    empty = rig.ask(query, **_params(query))
    rig.write(envelope(**EVERYTHING))
    full = rig.ask(query, **_params(query))
    assert full.rows.num_rows > 0 or query in ("computations", "computation_prefixes", "computation_page")
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
    before = ("groups", "exceptions", "exception_kinds", "events", "workers", "samples", "prefixes", "completeness")
    for query in before:
        answer = rig.ask(query, **_params(query))
        assert (answer.rows.num_rows > 0, answer.skipped) == (True, []), query
    assert (rig.records("team_deaths"), len(rig.records("team_events")), len(rig.records("families"))) == ([], 1, 1)
    rest = set(QUERIES) - {*before, "computations", "cluster_prefixes", *OF_A_TEAM, *ONE_ROW}
    for query in rest:
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
    query = questions.Question(sql.format(path=path), ())
    scope = session.Scope("acme", DAY, DAY)
    with pytest.raises(duckdb.Error, match=r"disabled|locked|not allowed|cannot"):
        rig.lake()._answer(query, scope, {})


def test_every_query_says_what_it_reads() -> None:
    names = [path.name.removesuffix(".sql") for path in resources.files("daskscope_query").joinpath("sql").iterdir()]
    assert {*QUERIES, *ROLLUPS, *ELSEWHERE} == set(names)
    for name in names:
        for read in questions.question(name).reads:
            assert read.removesuffix("_before") in {*TABLES, *ROLLUPS, "catalog"}, name
