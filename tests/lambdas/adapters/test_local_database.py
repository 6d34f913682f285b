"""What only the SQLite file of the embedded world has: versions, corruption, locks, other processes, foreign errors."""

import inspect
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from daskscope_lambdas.adapters.local import (
    Database,
    SqliteClusters,
    SqliteDeletions,
    SqlitePolicies,
    SqliteQueue,
    SqliteSeals,
    SqliteTickets,
    SqliteTokens,
)
from daskscope_lambdas.adapters.local import database as module
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.ports import EXPIRED_KEPT_S, Beat, Missing, StoreError, Taken, Ticket, TokenRow, identity_key
from daskscope_lambdas.testing import FakeClock, race, unseal
from daskscope_lambdas.wiring import Adapters, connect


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "registry.sqlite"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = Database(path)
    yield database
    database.close()


def test_it_is_durable_and_shared(database: Database) -> None:
    with database.reading() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    with database.writing() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_every_table_is_strict(database: Database) -> None:
    with database.reading() as connection:
        tables = connection.execute(
            "SELECT name, strict FROM pragma_table_list WHERE name NOT LIKE 'sqlite_%'"
        ).fetchall()
    assert {row["name"] for row in tables} == {
        "messages", "dead_letters", "clusters", "numbers", "seals", "tokens", "deleted", "deletions", "wishes", "users",
        "memberships", "tickets", "reports", "report_numbers",
    }  # fmt: skip
    assert all(row["strict"] for row in tables)


def test_a_block_that_raises_is_undone(database: Database) -> None:
    def half() -> None:
        with database.writing() as connection:
            connection.execute("INSERT INTO numbers VALUES ('acme', 1)")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    with database.writing() as connection:
        assert connection.execute("SELECT count(*) FROM numbers").fetchone()[0] == 0


def test_connections_are_as_many_as_were_in_use_at_once(database: Database) -> None:
    with database.reading() as one, database.reading() as other:
        assert one is not other
    with database.reading() as again:
        assert again in (one, other)


def test_threads_of_one_process_share_it(database: Database) -> None:
    queue = SqliteQueue(database, FakeClock())
    assert race(32, lambda n: queue.send(str(n))) == [None] * 32
    assert len(queue.receive(100, 30.0)) == 32


@pytest.mark.parametrize("content", [b"", b"x", b"not a database at all" * 500])
def test_a_file_that_is_no_database_is_named_and_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"registry\.sqlite"):
        Database(path)
    assert path.read_bytes() == content


def test_a_corrupt_page_is_a_store_error_with_its_cause(path: Path) -> None:
    database = Database(path)
    SqliteQueue(database, FakeClock()).send("x")
    database.close()
    pages = bytearray(path.read_bytes())
    pages[4096:] = os.urandom(len(pages) - 4096)
    path.write_bytes(pages)
    with pytest.raises(StoreError, match=r"registry\.sqlite") as caught:
        SqliteQueue(Database(path), FakeClock()).send("y")
    assert isinstance(caught.value.__cause__, sqlite3.DatabaseError)


@pytest.mark.parametrize("version", [0, module.VERSION + 1])
def test_another_version_is_refused(path: Path, version: int) -> None:
    Database(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError, match=f"version {version}"):
        Database(path)


def of_version(number: int, path: Path) -> Path:
    """As the releases of that version wrote it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(Path(__file__).with_name(f"registry-version-{number}.sql").read_text())
    return path


def of_version_1(path: Path) -> Path:
    return of_version(1, path)


def shape(database: Database) -> list[tuple[object, ...]]:
    with database.reading() as connection:
        names = [row["name"] for row in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]
        return [tuple(row) for name in names for row in connection.execute(f"PRAGMA table_xinfo('{name}')")] + [
            tuple(row) for name in names for row in connection.execute(f"PRAGMA index_xinfo('{name}')")
        ]


def test_a_file_of_version_1_becomes_one_of_today_with_all_it_holds(path: Path, tmp_path: Path) -> None:
    database, fresh = Database(of_version_1(path)), Database(tmp_path / "fresh.sqlite")
    assert shape(database) == shape(fresh)
    clusters = SqliteClusters(database)
    assert [row.uuid for row in clusters.living()] == ["u1"]
    assert clusters.find("acme", "u1").totals == {"n_workers": 2}
    assert clusters.get("acme", 2).lost == {"buffer": 1}
    assert clusters.retire(clusters.find("acme", "u1"))
    assert clusters.enrol("acme", "u3", 92.0, 102.0).id == 3
    assert SqliteSeals(database).boundary() == date(2026, 11, 20)
    assert SqliteTokens(database).find("k1").name == "laptop"
    assert [delivery.body for delivery in SqliteQueue(database, FakeClock()).receive(10, 30.0)] == ["waiting"]
    database.close()
    assert [row.uuid for row in SqliteClusters(Database(path)).living()] == ["u3"]


def test_a_file_of_version_2_becomes_one_of_today_with_all_it_holds(path: Path, tmp_path: Path) -> None:
    database, fresh = Database(of_version(2, path)), Database(tmp_path / "fresh.sqlite")
    assert shape(database) == shape(fresh)
    clusters = SqliteClusters(database)
    assert [row.uuid for row in clusters.living()] == ["u1"]
    assert clusters.find("acme", "u1").close_asked_at is None
    assert clusters.ask_close("acme", "u1", "ann", None, 120.0)
    database.close()
    assert SqliteClusters(Database(path)).find("acme", "u1").close_asked_by == "ann"


def test_a_file_of_version_3_becomes_one_of_today_with_all_it_holds(path: Path, tmp_path: Path) -> None:
    database, fresh = Database(of_version(3, path)), Database(tmp_path / "fresh.sqlite")
    assert shape(database) == shape(fresh)
    clusters = SqliteClusters(database)
    told, untold = clusters.find("acme", "u1"), clusters.find("acme", "u2")
    assert (told.identity, told.uptime_s, told.skew_s) == ({"name": "x"}, 0.0, None)
    assert (told.identity_of, untold.identity_of) == (identity_key("b1", 7), "")
    late = Beat(
        boot="b1", seq=0, received_at=120.0, made_at=109.5, next_s=10.0, phase="running", reason=None,
        identity={"name": "older"}, totals={}, lost={},
    )  # fmt: skip
    assert not clusters.beat("acme", "u1", late).newer
    assert clusters.find("acme", "u1") == told


def test_a_file_of_version_4_becomes_one_of_today_with_all_it_holds(path: Path, tmp_path: Path) -> None:
    database, fresh = Database(of_version(4, path)), Database(tmp_path / "fresh.sqlite")
    assert shape(database) == shape(fresh)
    policies, tokens = SqlitePolicies(database), SqliteTokens(database)
    assert list(policies.accounts()) == ["acme", "globex"]
    assert policies.wish("acme", "retention") == {"logs": 30, "tasks": 7}
    assert policies.wish("acme", "idle") == {}
    laptop, old = tokens.list("acme")
    assert laptop == TokenRow(
        key_id="k1", secret_sha256="abab", account="acme", scopes=frozenset({"ingest", "read"}), name="laptop",
        created_at=100.5, expires_at=4e9 + 0.25,
    )  # fmt: skip
    assert (old.revoked_at, old.user, old.kind, old.parent, old.used_on) == (150.0, None, "token", None, None)
    tokens.used("k1", date(2026, 11, 22))
    row = SqliteClusters(database).find("acme", "u1")
    assert (row.uptime_s, row.skew_s, row.identity) == (3.5, 0.25, {"name": "x"})
    assert [each.cluster for each in SqliteDeletions(database).pending("acme")] == ["c1"]
    database.close()
    assert SqliteTokens(Database(path)).find("k1").used_on == date(2026, 11, 22)


def test_many_that_open_a_file_of_version_1_at_once_change_it_once(path: Path) -> None:
    of_version_1(path)
    opened = race(8, lambda _: Database(path))
    assert all(isinstance(each, Database) for each in opened)
    assert [row.uuid for row in SqliteClusters(Database(path)).living()] == ["u1"]


def test_a_change_of_version_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_version_1(path)
    monkeypatch.setattr(module, "_WAYS", {1: (*module._WAYS[1], "no SQL")})
    with pytest.raises(StoreError, match="syntax"):
        Database(path)
    monkeypatch.undo()
    assert [row.uuid for row in SqliteClusters(Database(path)).living()] == ["u1"]


def test_a_file_that_went_is_an_error_and_not_an_empty_registry(path: Path) -> None:
    database = Database(path)
    database.close()
    path.unlink()
    with pytest.raises(StoreError):
        SqliteTokens(database).list("acme")
    assert not path.exists()


def test_a_full_disk_loses_the_one_message_and_says_so(database: Database) -> None:
    queue = SqliteQueue(database, FakeClock())
    with database.reading() as connection:
        connection.execute("PRAGMA max_page_count = 60")
    queue.send("fits")
    with pytest.raises(StoreError, match="full") as caught:
        queue.send("x" * 500_000)
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    queue.send("fits too")
    assert [delivery.body for delivery in queue.receive(10, 30.0)] == ["fits", "fits too"]


def test_a_lock_that_does_not_end_is_a_store_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BUSY_S", 0.0)
    database, other = Database(path), Database(path)
    with other.writing() as connection:
        connection.execute("INSERT INTO numbers VALUES ('acme', 1)")
        assert SqliteTokens(database).list("acme") == []  # readers wait for nobody
        with pytest.raises(StoreError, match="locked") as caught:
            SqliteQueue(database, FakeClock()).send("x")
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    SqliteQueue(database, FakeClock()).send("x")
    database.close()
    other.close()


FOREIGN = [kind for _, kind in inspect.getmembers(sqlite3, inspect.isclass) if issubclass(kind, Exception)]


def test_all_of_sqlites_exceptions_are_met_here() -> None:
    assert {sqlite3.Warning, sqlite3.Error, sqlite3.DatabaseError, sqlite3.InterfaceError} <= set(FOREIGN)
    assert len(FOREIGN) >= 10


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("way", ["reading", "writing"])
def test_every_sqlite_exception_becomes_a_ports_error(database: Database, way: str, kind: type[Exception]) -> None:
    error = kind("broken")
    with pytest.raises(StoreError, match=r"registry\.sqlite: broken") as caught, getattr(database, way)():
        raise error
    assert caught.value.__cause__ is error
    with database.writing() as connection:  # and it works on
        connection.execute("INSERT INTO numbers VALUES ('acme', 1)")


def test_a_number_too_large_for_sqlite_is_a_store_error(database: Database) -> None:
    def insert() -> None:
        with database.writing() as connection:
            connection.execute("INSERT INTO numbers VALUES ('acme', ?)", (2**63,))

    with pytest.raises(StoreError, match="too large") as caught:
        insert()
    assert isinstance(caught.value.__cause__, OverflowError)


def test_only_a_repeated_key_is_taken(database: Database) -> None:
    row = TokenRow(key_id="k", secret_sha256="s", account="a", scopes=frozenset(), name="n", created_at=1.0)
    tokens = SqliteTokens(database)
    tokens.add(row)
    with pytest.raises(Taken) as caught:
        tokens.add(row)
    assert isinstance(caught.value.__cause__, sqlite3.IntegrityError)
    with pytest.raises(StoreError) as null, database.writing() as connection:
        connection.execute("INSERT INTO numbers VALUES ('x', NULL)")
    assert type(null.value) is StoreError


def test_the_buried_are_kept_with_the_reason(database: Database) -> None:
    clock = FakeClock(1000.0)
    queue = SqliteQueue(database, clock)
    queue.send("bad")
    clock.advance(5)
    (delivery,) = queue.receive(1, 30.0)
    queue.bury(delivery.receipt, "no envelope")
    with database.reading() as connection:
        rows = [dict(row) for row in connection.execute("SELECT * FROM dead_letters")]
    assert rows == [
        {"id": 1, "body": "bad", "sent_at": 1000.0, "receive_count": 1, "buried_at": 1005.0, "reason": "no envelope"}
    ]


PROCESS = """
import sys
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.testing import seal
from daskscope_lambdas.wiring import connect
print("ready", flush=True)
sys.stdin.readline()
world = connect(LocalEnv(data=sys.argv[1], pages="login"))
for n in range(10):
    row = world.clusters.enrol("acme", f"{sys.argv[2]}/{n}", 1.0, 2.0)
    world.queue.send(f"{sys.argv[2]}/{n}")
sealed = seal(world.vault, "acme", sys.argv[2].encode(), "c")
print(sealed.hex(), flush=True)
"""


def test_processes_that_start_at_once_make_one_world(tmp_path: Path) -> None:
    data = str(tmp_path / "new" / "data")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, data, str(n)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )
        for n in range(4)
    ]  # fmt: skip
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0] * 4
    world = connect(LocalEnv(data=data, pages="login"))
    everything = sorted(f"{process}/{n}" for process in range(4) for n in range(10))
    assert sorted(delivery.body for delivery in world.feed.receive(100, 30.0)) == everything
    rows = world.clusters.page("acme", None, 100, None).rows
    assert sorted(row.uuid for row in rows) == everything
    assert len({row.id for row in rows}) == 40
    assert [unseal(world.vault, "acme", bytes.fromhex(output), "c") for output in outputs] == [b"0", b"1", b"2", b"3"]
    assert sorted(path.name for path in Path(data).iterdir() if "-draft-" in path.name) == []
    world.close()


def test_connections_end_with_the_world(adapters: Adapters, tmp_path: Path) -> None:
    adapters.queue.send("x")
    adapters.close()
    assert [path.name for path in sorted((tmp_path / "data").glob("registry*"))] == ["registry.sqlite"]


@pytest.mark.parametrize("anew", [True, False])
def test_what_was_deleted_is_in_no_file_and_only_a_small_one_is_written_anew(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, anew: bool
) -> None:
    """A large one would keep everybody from writing meanwhile."""
    path = tmp_path / "registry.sqlite"
    database = Database(path)
    queue = SqliteQueue(database, clock)
    for n in range(40):
        queue.send(f"doomedwords {n} " * (1 + 100 * n))
        queue.send(f"minewords {n} " * (1 + 90 * n))
    every = queue.receive(1000, 60.0)
    queue.delete([delivery.receipt for delivery in every if delivery.body.startswith("doomed")])
    if not anew:
        monkeypatch.setattr(module, "ANEW_BYTES", 1 << 20)
    assert path.stat().st_size > 1 << 20
    size = path.stat().st_size
    database.scrub()
    text = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert (b"doomedwords" in text, b"minewords" in text) == (False, True)
    assert (path.stat().st_size < size) == anew
    database.close()


def test_what_expired_is_in_the_file_no_longer_than_it_must(database: Database, clock: FakeClock) -> None:
    tickets, tokens = SqliteTickets(database, clock), SqliteTokens(database)
    row = TokenRow(
        key_id="old", secret_sha256="s", account="a", scopes=frozenset(), name="n", created_at=1.0,
        expires_at=clock.now(),
    )  # fmt: skip
    tokens.add(row)
    tickets.add(Ticket(key="old", kind="sign-in", told={}, expires_at=clock.now() + 1))
    clock.advance(EXPIRED_KEPT_S)
    tickets.add(Ticket(key="new", kind="sign-in", told={}, expires_at=clock.now() + 1))
    with pytest.raises(Missing):
        tickets.find("old")
    tokens.add(replace(row, key_id="k1", created_at=clock.now()))
    assert tokens.find("old") == row
    tokens.add(replace(row, key_id="k2", created_at=clock.now() + 1))
    with pytest.raises(Missing):
        tokens.find("old")
