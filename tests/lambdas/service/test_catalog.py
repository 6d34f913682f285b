import string
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskscope.errors import NotFound
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service import records
from daskscope_lambdas.service.catalog import LATEST_START, SORTS, Catalog, Filter, Listed
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.service.cataloguing import ACCOUNT, catalog, live, told, uuid_at

WHO: list[dict[str, Any]] = [
    {"name": "nightly-etl", "user": "ada", "host": "node-1", "kind": "SLURMCluster", "tags": {"team": "weather"}},
    {"name": "Train", "user": "bob", "host": "node-2", "kind": "LocalCluster", "tags": {"team": "ml", "gpu": ""}},
    {"name": "train", "user": "ada", "host": "node-2", "tags": {"team": "ml"}},
    {"user": "eve", "host": "laptop"},
]  # fmt: skip


@pytest.fixture
def team(adapters: LocalAdapters, clock: FakeClock) -> Catalog:
    """Clusters 1 to 4: one that is lost, one that closed, two that run; and another account's."""
    told(adapters, 1, started_s=500.0, totals={"thread_us": 40}, **WHO[0])
    clock.advance(100.0)
    told(adapters, 2, started_s=50.0, phase="closed", totals={"thread_us": 30, "n_tasks_erred": 2}, **WHO[1])
    told(adapters, 3, started_s=40.0, totals={"thread_us": 20, "peak_workers": 9}, **WHO[2])
    told(adapters, 4, started_s=30.0, **WHO[3])
    told(adapters, 5, account="globex", name="secret")
    return catalog(adapters)


def ids(team: Catalog, sort: str = LATEST_START, **wanted: Any) -> list[int]:
    page = team.page(ACCOUNT, Filter(**wanted), 100, sort=sort)
    assert (page.total, page.cursor) == (len(page.items), None)
    return [each.row.id for each in page.items]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [4, 3, 2, 1]),
        ({"user": "ada"}, [3, 1]),
        ({"user": "Ada"}, []),
        ({"status": "running"}, [4, 3]),
        ({"status": "stopped"}, [2]),
        ({"status": "lost"}, [1]),
        ({"kind": "SLURMCluster"}, [1]),
        ({"name": "train"}, [3]),
        ({"name": "cluster 4"}, [4]),
        ({"tag": "team"}, [3, 2, 1]),
        ({"tag": "gpu"}, [2]),
        ({"tag": "team=ml"}, [3, 2]),
        ({"tag": "gpu="}, [2]),
        ({"tag": "team="}, []),
        ({"tag": "team=ml", "user": "bob"}, [2]),
        ({"part": "TRAIN"}, [3, 2]),
        ({"part": "node-2"}, [3, 2]),
        ({"part": "slurm"}, [1]),
        ({"part": "team=weather"}, [1]),
        ({"part": "eve"}, [4]),
        ({"part": "4"}, [4]),
        ({"part": "%"}, []),
    ],
)
def test_what_matches(team: Catalog, wanted: dict[str, Any], found: list[int]) -> None:
    assert ids(team, **wanted) == found


def test_heard_of_in_a_time(team: Catalog, clock: FakeClock) -> None:
    between = datetime.fromtimestamp(clock.now() - 50, UTC)
    assert ids(team, since=between) == [4, 3, 2]
    assert ids(team, until=between) == [1]
    assert ids(team, since=between, until=between) == []
    assert ids(team, since=datetime.fromtimestamp(clock.now() - 100, UTC)) == [4, 3, 2, 1], "its moment is in it"


@pytest.mark.parametrize(
    ("sort", "found"),
    [("created", [1, 2, 3, 4]), ("-id", [4, 3, 2, 1]), ("user", [1, 3, 2, 4]), ("-name", [3, 2, 1, 4]),
     ("-thread_seconds", [1, 2, 3, 4]), ("-cost", [1, 2, 3, 4]), ("cost", [3, 2, 1, 4]),
     ("-peak_workers", [3, 4, 2, 1]), ("-n_tasks_erred", [2, 4, 3, 1]), ("-duration", [1, 2, 3, 4]),
     ("last_seen", [1, 2, 3, 4])],
)  # fmt: skip
def test_what_comes_first(team: Catalog, sort: str, found: list[int]) -> None:
    """Whatever the case of texts; those without a value last, either way."""
    assert ids(team, sort) == found


def test_what_a_cluster_costs_stands_beside_it(team: Catalog) -> None:
    costs = {each.row.id: each.cost for each in team.page(ACCOUNT, Filter(), 9).items}
    assert {number: cost["quality"] for number, cost in costs.items()} == {
        1: "estimated", 2: "estimated", 3: "estimated", 4: "unknown",
    }  # fmt: skip
    assert costs[4]["dollars"] is None
    assert costs[1]["dollars"] == pytest.approx(2 * costs[3]["dollars"])


def all_of(team: Catalog, sort: str, limit: int, wanted: Filter | None = None) -> list[Listed]:
    found: list[Listed] = []
    cursor = None
    for _ in range(200):
        page = team.page(ACCOUNT, wanted or Filter(), limit, cursor, sort)
        assert len(page.items) <= limit
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found
    raise AssertionError("the list has no end")


KEYS: dict[str, Callable[[ClusterRow, float], Any]] = {
    "id": lambda row, now: row.id,
    "name": lambda row, now: records.name_of(row).lower(),
    "user": lambda row, now: (row.identity.get("user") or "\0").lower(),
    "created": lambda row, now: row.started_at,
    "last_seen": lambda row, now: now if row.phase == "running" else row.last_received_at,
    "duration": records.up_s,
    "peak_workers": lambda row, now: row.totals.get("peak_workers", 0),
    "n_tasks": lambda row, now: row.totals.get("n_tasks", 0),
    "thread_seconds": lambda row, now: row.totals.get("thread_us", 0),
}
FEW = st.integers(0, 3)
CLUSTERS = st.lists(
    st.tuples(FEW, FEW, FEW, st.sampled_from(["running", "closed"]), st.text(string.ascii_letters, max_size=2)),
    max_size=12,
)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(clusters=CLUSTERS, sort=st.sampled_from([*KEYS, *(f"-{each}" for each in KEYS)]), limit=st.integers(1, 5))
def test_the_pages_of_a_list_are_all_of_it_in_its_order(
    adapters: LocalAdapters, clock: FakeClock, clusters: list[Any], sort: str, limit: int
) -> None:
    for row in adapters.clusters.page(ACCOUNT, None, 100, None).rows:
        adapters.clusters.drop(row)
    for number, (age, count, thread_us, phase, name) in enumerate(clusters, 1):
        told(adapters, number, started_s=float(age), phase=phase, name=name, user=name.upper(),
             totals={"n_tasks": count, "peak_workers": count, "thread_us": thread_us})  # fmt: skip
        clock.advance(1.0)
    rows = list(adapters.clusters.changed(ACCOUNT, 0.0))
    now, backwards = clock.now(), sort.startswith("-")
    key = KEYS[sort.removeprefix("-")]
    named = [row for row in rows if row.identity.get("user") is not None] if sort.endswith("user") else rows
    expected = sorted(named, key=lambda row: (key(row, now), row.id), reverse=backwards)
    if sort.endswith("user"):
        expected += sorted((row for row in rows if row not in named), key=lambda row: row.id, reverse=backwards)
    assert [each.row for each in all_of(catalog(adapters), sort, limit)] == expected


def test_a_cluster_that_comes_between_two_pages_moves_no_other(
    team: Catalog, adapters: LocalAdapters, clock: FakeClock
) -> None:
    first = team.page(ACCOUNT, Filter(), 2)
    clock.advance(1.0)
    told(adapters, 6, started_s=1.0)
    told(adapters, 7, started_s=900.0)
    rest = team.page(ACCOUNT, Filter(), 9, first.cursor)
    assert [each.row.id for each in first.items] == [4, 3]
    assert [each.row.uuid for each in rest.items] == [uuid_at(2), uuid_at(1), uuid_at(7)]


@pytest.mark.parametrize("sort", ["-last_seen", "last_seen"])
def test_who_goes_on_reporting_or_ends_between_two_pages_is_told_once(
    adapters: LocalAdapters, clock: FakeClock, sort: str
) -> None:
    for number in range(1, 9):
        told(adapters, number, phase="closed" if number < 3 else "running")
        clock.advance(1.0)
    team, seen, cursor = catalog(adapters), list[int](), None
    for turn in range(1, 5):
        page = team.page(ACCOUNT, Filter(), 2, cursor, sort)
        seen += [each.row.id for each in page.items]
        cursor = page.cursor
        clock.advance(5.0)
        for number in range(3, 9):
            told(adapters, number, seq=turn, phase="closed" if number == turn + 3 else "running")
    assert cursor is None
    expected = [1, 2, 3, 4, 5, 6, 7, 8]
    assert seen == (expected[::-1] if sort.startswith("-") else expected)


@pytest.mark.parametrize(
    ("tag", "found"),
    [("a=b=c", [1, 2]), ("a=b", [2]), ("a", [1]), ("a=b=", []), ("b=c", []), ("a=", []), ("c=", [3]), ("=c=", [])],
)
def test_a_tag_whose_key_or_value_holds_its_sign(adapters: LocalAdapters, tag: str, found: list[int]) -> None:
    for number, tags in enumerate(({"a": "b=c"}, {"a=b": "c"}, {"c": ""}, {}), 1):
        told(adapters, number, tags=tags)
    assert ids(catalog(adapters), "id", tag=tag) == found


def test_pages_count_time_from_the_first_one(team: Catalog, clock: FakeClock) -> None:
    running = Filter(status="running")
    first = team.page(ACCOUNT, running, 1)
    clock.advance(3600.0)
    assert [each.row.id for each in team.page(ACCOUNT, running, 9, first.cursor).items] == [3]
    assert team.page(ACCOUNT, running, 9).items == []


def test_an_item_continues_the_list_behind_itself(team: Catalog) -> None:
    items = team.page(ACCOUNT, Filter(), 9).items
    rest = team.page(ACCOUNT, Filter(), 9, items[1].cursor).items
    assert [each.row.id for each in rest] == [2, 1]


@pytest.mark.parametrize("cursor", ["", "x", "ä", "WzFd", "1", "5_0_0", "bnVsbA", "WyItY3JlYXRlZCIsMS4wLG51bGwsMS4wXQ",
                                    "WyItY3JlYXRlZCIsMWU5OTksMSwxXQ", "WyJuYW1lIiwxLjAsMSwiYSJd"])  # fmt: skip
def test_a_foreign_cursor_is_refused(team: Catalog, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        team.page(ACCOUNT, Filter(), 9, cursor)


def test_a_cursor_is_of_its_sort(team: Catalog) -> None:
    cursor = team.page(ACCOUNT, Filter(), 1, sort="name").cursor
    assert cursor
    with pytest.raises(ValueError, match="cursor"):
        team.page(ACCOUNT, Filter(), 9, cursor, "-name")


def test_an_empty_account_has_no_clusters(adapters: LocalAdapters) -> None:
    for sort in SORTS:
        page = catalog(adapters).page(ACCOUNT, Filter(), 9, sort=sort)
        assert (page.items, page.cursor, page.total, page.as_of) == ([], None, 0, None)


@pytest.mark.parametrize(
    "reference", ["1", uuid_at(1), f"Scheduler-{uuid_at(1)}", "00000000-0000-0000-0000-000000000001", "nightly-etl"]
)
def test_a_cluster_by_whatever_one_has_of_it(team: Catalog, reference: str) -> None:
    assert team.find(ACCOUNT, reference).id == 1


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("5", "No cluster 5 in account acme. Closest: 4 cluster 4 (running). `daskscope clusters` lists them."),
        ("nightly_etl", "No cluster nightly_etl in account acme. Closest: 1 nightly-etl (lost). "
                        "`daskscope clusters` lists them."),
        ("zzzzzzzzz", "No cluster zzzzzzzzz in account acme. `daskscope clusters` lists them."),
        ("secret", "No cluster secret in account acme. `daskscope clusters` lists them."),
        ("f" * 32, f"No cluster {'f' * 32} in account acme."),
        (uuid_at(5), f"No cluster {uuid_at(5)} in account acme."),
        ("999999999999999", "No cluster 999999999999999 in account acme. Closest: 4 cluster 4 (running). "
                            "`daskscope clusters` lists them."),
    ],
)  # fmt: skip
def test_what_is_not_there_is_told_with_what_comes_closest(team: Catalog, reference: str, told: str) -> None:
    with pytest.raises(NotFound) as refused:
        team.find(ACCOUNT, reference)
    assert str(refused.value) == told


def test_a_name_that_several_have_names_none(adapters: LocalAdapters, team: Catalog, clock: FakeClock) -> None:
    for number in range(10, 17):
        told(adapters, number, started_s=float(number), name="nightly")
    with pytest.raises(NotFound) as refused:
        team.find(ACCOUNT, "nightly")
    newest = ", ".join(f"{adapters.clusters.find(ACCOUNT, uuid_at(n)).id} (running)" for n in range(10, 15))
    assert str(refused.value) == f"7 clusters of account acme are named nightly: {newest} and 2 more. Give a number."


def test_nobody_finds_another_accounts_cluster(team: Catalog) -> None:
    for reference in ("secret", uuid_at(5)):
        with pytest.raises(NotFound):
            team.find(ACCOUNT, reference)
    assert team.find("globex", "secret").account == "globex"


def test_one_that_went_since_the_catalog_was_looked_at_is_not_there(adapters: LocalAdapters, team: Catalog) -> None:
    seen = live(adapters).table(ACCOUNT)
    adapters.clusters.drop(adapters.clusters.get(ACCOUNT, 2))

    def before(_account: str) -> pa.Table:
        return seen

    page = Catalog(adapters.clusters, adapters.clock, before).page(ACCOUNT, Filter(), 3)
    assert [each.row.id for each in page.items] == [4, 3]
    assert page.cursor, "the list goes on behind it"
