"""What a lake tells that is read without a server, beside what the stores tell that wrote it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from daskscope_lambdas.adapters.direct import (
    CatalogClock,
    CatalogClusters,
    LakeObjects,
    LakeSeals,
    NewestCatalog,
    NoDeadLetters,
    NoDeletions,
    NoPolicies,
    NoQueue,
    NoReportFiles,
    NoReports,
    NoTickets,
    NoUsers,
    OwnToken,
    Place,
    vault,
)
from daskscope_lambdas.adapters.local import DiskObjects
from daskscope_lambdas.ports import ClusterRow, Deletion, Missing, ReadOnly, StoreError, Ticket, TokenRow
from daskscope_lambdas.service.catalog_files import CatalogFile
from daskscope_lambdas.service.catalog_rows import row_as_json, row_of_json
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from daskscope_query import layout
from daskscope_query.tables import MOMENT

MONDAY, TUESDAY, SUNDAY = date(2026, 11, 16), date(2026, 11, 17), date(2026, 11, 22)
KEYS = ("a/b/c", "a/b-1", "a/b0", "a-1", "code/account=acme/0f", "code/account=acme/0f-2026-11-21", "b")


@pytest.fixture
def disk(tmp_path: Path) -> DiskObjects:
    return DiskObjects(tmp_path / "lake")


@pytest.fixture
def place(disk: DiskObjects, tmp_path: Path) -> Place:
    return Place.at(str(tmp_path / "lake"), {})


def test_objects_are_those_that_lie_there(disk: DiskObjects, place: Place) -> None:
    for key in KEYS:
        disk.put_new(key, key.encode())
    objects = LakeObjects(place)
    assert [objects.get(key) for key in KEYS] == [key.encode() for key in KEYS]
    for prefix in ("", "a", "a/", "a/b", "a/b/", "code/account=acme/0f", "nothing", "nothing/at/all/"):
        assert list(objects.list(prefix)) == list(disk.list(prefix)), prefix
    for missing in ("c", "a/x", "a/b/c/d"):
        with pytest.raises(Missing):
            objects.get(missing)
    for bad in ("../keys/acme.key", "/etc/passwd", "a//b"):
        with pytest.raises(ValueError, match="no object key"):
            objects.get(bad)
        with pytest.raises(ValueError, match="no start of an object key"):
            objects.list(bad)


def test_the_boundary_is_the_newest_day_that_was_found_sealed(disk: DiskObjects, place: Place) -> None:
    seals = LakeSeals(place)
    assert seals.boundary() is None
    disk.put_new(layout.plan_key(MONDAY), b"{}")
    assert seals.boundary() is None, "a plan is not a sealed day yet"
    disk.put_new(layout.sealed_at_key(MONDAY), b"1")
    disk.put_new(layout.plan_key(TUESDAY), b"{}")
    assert seals.boundary() == MONDAY
    disk.put_new(layout.sealed_at_key(SUNDAY), b"1")
    assert seals.boundary() == SUNDAY


def row(id: int, started_at: float) -> ClusterRow:
    return ClusterRow(
        account="acme", id=id, uuid=f"{id:032x}", started_at=started_at, first_received_at=started_at,
        last_received_at=started_at + 1,
    )  # fmt: skip


def table(rows: list[ClusterRow]) -> pa.Table:
    return pa.table(
        {
            "account": [row.account for row in rows],
            "cluster": [row.uuid for row in rows],
            "cluster_id": [row.id for row in rows],
            "last_received_at": pa.array([int(row.last_received_at * 1000) for row in rows], MOMENT),
            "row": [row_as_json(row) for row in rows],
        }
    )


class Files:
    """The catalog's files, in memory; counts how often it is asked."""

    def __init__(self, *rows: ClusterRow, as_of: float = 1000.0) -> None:
        self.asked = 0
        self.monotonic_s = 0.0
        self.found: CatalogFile | None = CatalogFile(as_of, table(list(rows)), True)

    def newest(self) -> CatalogFile | None:
        self.asked += 1
        return self.found

    def file(self) -> NewestCatalog:
        return NewestCatalog(self.newest, "here", lambda: self.monotonic_s)


def test_clusters_are_listed_as_the_registry_lists_them(adapters: LocalAdapters) -> None:
    known = adapters.clusters
    for number, started_at in ((1, 5.25), (2, 9.0), (3, 5.25), (4, 1.0)):
        known.enrol("acme", f"{number:032x}", started_at, 100.0 + number)
    rows = [known.get("acme", number) for number in (1, 2, 3, 4)]
    clusters = CatalogClusters(Files(*rows).file(), row_of_json)
    for limit in (1, 2, 10):
        for since in (None, 102.5):
            cursor = None
            while True:
                mine, theirs = (each.page("acme", since, limit, cursor) for each in (clusters, known))
                assert (list(mine.rows), mine.cursor) == (list(theirs.rows), theirs.cursor)
                if (cursor := theirs.cursor) is None:
                    break
    uuids = [rows[2].uuid, "f" * 32, rows[0].uuid]
    assert clusters.get_many("acme", uuids) == known.get_many("acme", uuids) == [rows[2], rows[0]]
    for since_at in (0.0, 103.0, 103.0004, 1e12):
        assert {row.id for row in clusters.changed("acme", since_at)} == {
            row.id for row in known.changed("acme", since_at)
        }
    assert list(clusters.changed("globex", 0.0)) == []
    assert clusters.accounts() == known.accounts() == {"acme"}
    assert clusters.find("acme", rows[1].uuid) == clusters.get("acme", 2) == rows[1]
    assert list(clusters.page("globex", None, 10, None).rows) == clusters.get_many("globex", uuids) == []
    for ask in (
        lambda: clusters.get("acme", 5),
        lambda: clusters.get("globex", 1),
        lambda: clusters.find("acme", "0" * 32),
        lambda: clusters.find("globex", rows[0].uuid),
    ):
        with pytest.raises(Missing, match="No cluster"):
            ask()
    with pytest.raises(ValueError, match="cursor"):
        clusters.page("acme", None, 1, "nonsense")
    assert {row.id for row in clusters.living()} == {1, 2, 3, 4}
    assert clusters.deleted(["0" * 32]) == set()


def test_a_newer_catalog_is_found_in_time_and_read_once() -> None:
    first = row(1, 1.0)
    files = Files(first)
    clusters = CatalogClusters(files.file(), row_of_json)
    assert clusters.get("acme", 1) == clusters.get("acme", 1) == first
    assert files.asked == 1
    files.found = CatalogFile(1001.0, table([replace(first, seq=5), row(2, 2.0)]), True)
    assert clusters.get("acme", 1) == first
    files.monotonic_s += 1.0
    assert (clusters.get("acme", 1).seq, clusters.get("acme", 2).id) == (5, 2)
    files.found = None
    files.monotonic_s += 1.0
    with pytest.raises(Missing, match="here: there is no catalog"):
        clusters.get("acme", 1)


@pytest.mark.parametrize(
    ("now", "told"), [(1000.0, 1000.0), (2800.0, 1000.0), (2800.5, 2800.5), (999.0, 999.0), (90_000.0, 90_000.0)]
)
def test_time_stands_while_the_catalog_is_fresh(now: float, told: float) -> None:
    assert CatalogClock(Files(as_of=1000.0).file(), FakeClock(now)).now() == told


def test_time_goes_on_without_a_catalog() -> None:
    files = Files()
    files.found = None
    assert CatalogClock(files.file(), FakeClock(5.0)).now() == 5.0


def test_keys_open_and_seal_nothing(adapters: LocalAdapters, tmp_path: Path) -> None:
    sealed = adapters.vault.seal("acme", {"x": b"text"})
    assert vault(str(tmp_path / "data" / "keys")).open("acme", sealed) == {"x": b"text"}
    for keys in (None, str(tmp_path), str(tmp_path / "nowhere")):
        with pytest.raises(Missing):
            vault(keys).open("acme", sealed)


CHANGES: tuple[Callable[[Place], object], ...] = (
    lambda place: LakeObjects(place).put_new("a", b""),
    lambda place: LakeObjects(place).delete("a"),
    lambda place: LakeSeals(place).advance(None, MONDAY),
    lambda _: CatalogClusters(Files().file(), row_of_json).enrol("acme", "1", 1.0, 1.0),
    lambda _: CatalogClusters(Files().file(), row_of_json).ask_close("acme", "1", by="me", reason=None, at=1.0),
    lambda _: CatalogClusters(Files().file(), row_of_json).forget("acme", "1", 1.0),
    lambda _: vault(None).seal("acme", {"x": b"x"}),
    lambda _: vault(None).forget("acme"),
    lambda _: NoQueue().send("x"),
    lambda _: NoDeadLetters().send_back(lambda _: True),
    lambda _: NoPolicies().set_wish("acme", "retention", {}),
    lambda _: NoUsers().claim("ann", 1.0),
    lambda _: NoUsers().remove("acme", "ann"),
    lambda _: NoTickets().add(Ticket(key="0" * 64, kind="sign-in", told={}, expires_at=1.0)),
    lambda _: NoReports().set_private("acme", 1, True),
    lambda _: NoReportFiles().offer("x", 1, 1.0),
    lambda _: NoDeletions().ask(Deletion(account="acme", cluster=None, asked_at=1.0, by="me")),
    lambda _: OwnToken().revoke("x", 1.0),
    lambda _: OwnToken().expire("x", 1.0),
)

UNKNOWN: tuple[tuple[Callable[[], object], str], ...] = (
    (lambda: OwnToken().list("acme"), "tokens"),
    (lambda: NoPolicies().wish("acme", "retention"), "policy"),
    (lambda: NoPolicies().accounts(), "policy"),
    (lambda: NoUsers().list("acme"), "users"),
    (lambda: NoUsers().of("ann"), "users"),
    (lambda: NoUsers().find("acme", "ann"), "users"),
    (lambda: NoUsers().claimed("ann"), "users"),
    (lambda: NoTickets().list("acme"), "invitations"),
    (lambda: NoReports().page("acme", 10), "reports"),
    (lambda: NoReports().get("acme", 1), "reports"),
)


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_would_change_it_is_refused(place: Place, change: Callable[[Place], object]) -> None:
    with pytest.raises(ReadOnly, match="ask the server that writes it"):
        change(place)


@pytest.mark.parametrize(("ask", "what"), UNKNOWN)
def test_what_it_cannot_know_it_does_not_answer(ask: Callable[[], object], what: str) -> None:
    with pytest.raises(ReadOnly, match=f"^A lake without its server has no {what}: ask the server that writes it"):
        ask()


def test_there_is_nothing_of_what_a_lake_has_not() -> None:
    assert list(NoDeletions().pending("acme")) == []
    assert list(NoDeadLetters().list()) == list(NoDeadLetters().lasting()) == []


def test_a_process_has_one_token_of_its_own() -> None:
    tokens = OwnToken()
    mine = TokenRow(
        key_id="k", secret_sha256="0" * 64, account="acme", scopes=frozenset({"read"}), name="own", created_at=1.0
    )  # fmt: skip
    tokens.add(mine)
    tokens.used("k", MONDAY)
    assert tokens.find("k") == mine
    with pytest.raises(Missing):
        tokens.find("other")
    with pytest.raises(ReadOnly):
        tokens.add(replace(mine, key_id="l"))


@pytest.mark.parametrize("of", ["{}", "{}/", "file://{}"])
def test_a_folder_by_any_of_its_names(tmp_path: Path, of: str) -> None:
    (tmp_path / "lake" / "open").mkdir(parents=True)
    assert Place.at(of.format(tmp_path), {}).lake().root == str(tmp_path / "lake")
    assert Place.at(of.format(tmp_path / "lake"), {}).lake().root == str(tmp_path / "lake")


def test_a_uri_says_what_the_environment_says_unless_it_says_it_itself() -> None:
    told = {"region": "eu-west-1", "endpoint_override": "127.0.0.1:1", "scheme": "http"}
    found = Place.at("s3://bucket/team/", told)
    assert found.root == "s3://bucket/team?region=eu-west-1&endpoint_override=127.0.0.1%3A1&scheme=http"
    assert (found.path, found.named()) == ("bucket/team/", "s3://bucket/team")
    assert "region=eu-north-1&" in Place.at("s3://bucket?region=eu-north-1", told).root


@pytest.mark.parametrize("root", ["gopher://x/y", "s3://bucket?nonsense=1"])
def test_what_pyarrow_does_not_open(root: str) -> None:
    with pytest.raises(ValueError):
        Place.at(root, {})


def test_a_folder_that_may_not_be_read(disk: DiskObjects, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    files = type("Files", (), {"get_file_info": denied, "open_input_file": denied})()
    refused = replace(place, files=files)
    for ask in (lambda: refused.folders("seals/"), lambda: refused.read("a"), lambda: refused.has("a")):
        with pytest.raises(StoreError, match=r"Permission denied \(PermissionError\)"):
            ask()
