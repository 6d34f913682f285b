from datetime import date, timedelta
from typing import Any

import pytest

from daskscope import wire
from daskscope.errors import BadRequest
from daskscope.testing import event, groups
from daskscope_query import free
from daskscope_query.tables import CATALOG, ROLLUPS, TABLES
from tests.query.lake_rig import DAY, DAY_S, OTHER, START, TOMORROW, LakeRig, envelope

ALWAYS = (date.min, date.max)


@pytest.fixture
def told(rig: LakeRig) -> LakeRig:
    """Two days of acme and one of globex, with a repeat."""
    used = wire.Totals(n_workers=1, thread_us=100, action_us={"compute": 50})
    mine = envelope(events=[event(no=0, action="mine")], groups=groups({"no": 0}), totals=used)
    theirs = envelope("globex", 9, cluster=OTHER, events=[event(no=0, action="theirs")])
    rig.write(mine, theirs)
    rig.write(mine)
    rig.write(envelope(seq=1, events=[event(no=1, action="later")], received_at=START + DAY_S, totals=used))
    return rig


def rows(rig: LakeRig, sql: str, params: free.Params = None, account: str = "acme", days: Any = ALWAYS) -> Any:
    lake = free.FreeLake(str(rig.root), rig.seals.boundary())
    found = lake.select(free.question(sql, params), account=account, days=days, catalog=catalog)
    return found.rows.to_pylist()


def catalog() -> Any:
    columns = [CATALOG.schema.field(name) for name in free.CATALOG_COLUMNS]
    return CATALOG.schema.empty_table().select([column.name for column in columns])


def test_each_account_sees_its_own_rows_once(told: LakeRig) -> None:
    query = "SELECT action, account FROM Events ORDER BY action"
    assert rows(told, query) == [{"action": "later", "account": "acme"}, {"action": "mine", "account": "acme"}]
    assert rows(told, query, account="globex") == [{"action": "theirs", "account": "globex"}]
    assert rows(told, query, account="initech") == []
    everywhere = " UNION ALL ".join(f'SELECT account FROM "{name}"' for name in (*TABLES, *ROLLUPS))
    assert {row["account"] for row in rows(told, everywhere)} == {"acme"}


def test_days_narrow_it(told: LakeRig) -> None:
    query = "SELECT action FROM events"
    assert rows(told, query, days=(DAY, DAY)) == [{"action": "mine"}]
    assert rows(told, query, days=(TOMORROW, date.max)) == [{"action": "later"}]
    assert rows(told, query, days=(TOMORROW + timedelta(1), date.max)) == []


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("SELECT count(*) AS n FROM events WHERE action = ?", ["mine"]),
        ("SELECT count(*) AS n FROM events WHERE action = $1", ("mine",)),
        ("SELECT count(*) AS n FROM events WHERE action = $action", {"action": "mine"}),
        (
            "WITH events AS (FROM events), mine AS (FROM events WHERE action = 'mine') SELECT count(*) AS n FROM mine",
            None,
        ),
        ("SELECT (SELECT count(*) FROM events) - 1 AS n", None),
        (
            "SELECT count(DISTINCT c.day) - 1 AS n FROM clusters_daily c JOIN prefixes_daily USING (account)",
            None,
        ),
        ("SELECT count(*) + 1 AS n FROM catalog", None),
        ("SELECT 1 AS n", None),
    ],
)
def test_what_may_be_asked(told: LakeRig, query: str, params: free.Params) -> None:
    assert rows(told, query, params) == [{"n": 1}]


def test_tables_are_described(told: LakeRig) -> None:
    found = {row["column_name"] for row in rows(told, "DESCRIBE samples")}
    assert found == set(TABLES["samples"].schema.names)
    assert "row" not in {row["column_name"] for row in rows(told, "DESCRIBE catalog")}
    assert {row["column_name"] for row in rows(told, "SHOW events")} == set(TABLES["events"].schema.names)


@pytest.mark.parametrize(
    "query",
    [
        "SHOW TABLES",
        "SELECT name FROM (SHOW ALL TABLES)",
        "SELECT table_name AS name FROM information_schema.tables, (SELECT count(*) AS n FROM events) WHERE n = 2",
    ],
)
def test_it_is_told_which_tables_there_are(told: LakeRig, query: str) -> None:
    assert {row["name"] for row in rows(told, query)} >= {*TABLES, *ROLLUPS, CATALOG.name}
    assert rows(told, "SELECT count(*) AS n FROM events, (SHOW TABLES) WHERE name = 'tasks'") == [{"n": 2}]


@pytest.mark.parametrize(
    ("query", "params", "says"),
    [
        ("SELEC 1", None, 'syntax error at or near "SELEC"'),
        ("SELECT nothing FROM events", None, 'Referenced column "nothing" not found'),
        ("SELECT 1; SELECT 2", None, "not one SELECT"),
        ("", None, "not one SELECT"),
        ("DROP TABLE events", None, "not one SELECT"),
        ("SET threads = 64", None, "not one SELECT"),
        ("COPY (SELECT 1) TO '/tmp/x.csv'", None, "not one SELECT|file system operations are disabled"),
        ("ATTACH '/tmp/x.db'", None, "not one SELECT"),
        ("FROM happenings", None, r"happenings does not exist[\s\S]*Tables are audit, catalog, clusters, "),
        ("FROM '/etc/passwd'", None, "file system operations are disabled|does not exist"),
        ("FROM read_csv('/etc/passwd')", None, "file system operations are disabled"),
        ("FROM read_text('/etc/passwd')", None, "file system operations are disabled"),
        ("FROM glob('/etc/*')", None, "file system operations are disabled"),
        ("FROM read_parquet('s3://bucket/lake/open/*')", None, "file system operations are disabled"),
        ("FROM events WHERE action = ?", None, "Values were not provided"),
        ("FROM events WHERE action = $a", {"b": 1}, "[Pp]arameter"),
    ],
)
def test_what_may_not_is_told_before_anything_is_read(query: str, params: free.Params, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        free.question(query, params)


def test_a_value_that_is_not_of_its_type_is_the_query_s_fault(told: LakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope_query.files.read", lambda *_: pytest.fail("no file is looked at for it"))
    with pytest.raises(BadRequest, match=r"Could not convert string '(mine|later)'"):
        rows(told, "SELECT action::INT FROM events")


def test_a_file_that_cannot_be_read_is_named(told: LakeRig) -> None:
    key = f"open/events/day={DAY}/broken.parquet"
    told.objects.put_new(key, b"PAR1 not really")
    lake = free.FreeLake(str(told.root), None)
    query = free.question("SELECT count(*) AS n FROM events JOIN clusters_daily USING (cluster)")
    found = lake.select(query, account="acme", days=ALWAYS, catalog=catalog)
    assert (found.records(), found.skipped) == ([{"n": 4}], [key])
