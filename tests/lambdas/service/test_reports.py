import re
from typing import Any

import pytest

from daskscope.errors import BadMessage, Conflict, NotFound, PermissionDenied, TooLarge
from daskscope_lambdas.ports import Missing, ReportRow
from daskscope_lambdas.service.report_checks import MAX_BYTES, BadReportError
from daskscope_lambdas.service.reports import UPLOAD_S, Announced, ReportKeeper
from daskscope_lambdas.service.tokens import Principal
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.service.reporting import ADMIN, ANN, BOB, EVE, GUEST, HTML, Reporting, person, site


@pytest.fixture
def reporting(adapters: LocalAdapters) -> Reporting:
    return Reporting(adapters)


def test_a_report_comes_is_looked_at_and_kept(reporting: Reporting, clock: FakeClock):
    row, upload = reporting.announce(title="Nightly")
    assert (row.id, row.user, row.user_claimed, row.private, row.kept_at) == (1, "ann", False, False, None)
    assert re.fullmatch(r"[0-9A-Za-z]{22}", row.link)
    assert upload.expires_at == clock.now() + UPLOAD_S
    reporting.bring(row)
    clock.advance(5)
    kept = reporting.keeper.uploaded(ANN, row.id)
    assert kept.kept_at == clock.now()
    assert reporting.files() == [f"public/{row.link}.html"]
    clock.advance(5)
    assert reporting.keeper.uploaded(ANN, row.id) == kept, "once more changes nothing"


def test_what_is_brought_again_after_it_was_kept_changes_nothing(reporting: Reporting):
    row = reporting.kept()
    reporting.bring(row, HTML.replace(b"Dask", b"Evil"))
    assert reporting.keeper.uploaded(ANN, row.id) == row
    assert reporting.world.report_files.arrived(row.link, 9)[0] == len(HTML), "it lies where nobody gets it"
    assert f"public/{row.link}.html" in reporting.files()


@pytest.mark.parametrize(
    "head",
    [
        b"<!DOCTYPE html><p>", b"<!doctype\thtml >", b"<HTML lang=en>", b"\xef\xbb\xbf<html>",
        b"\n \r\n\f\t<!doctype html>", b"<!-- a -- b --><!----><html>",
        b"\n\n<!--" + b"x" * 60_000 + b"-->\n<!DOCTYPE html>",
    ],
)  # fmt: skip
def test_what_begins_as_html_does_is_taken(reporting: Reporting, head: bytes):
    assert reporting.kept(body=head + b"rest").kept_at is not None


@pytest.mark.parametrize(
    "body",
    [
        b"%PDF-1.7", b"GIF89a", b"{}", b"\x00<html>", b"<svg onload=alert(1)>", b"<htmlx>", b"<!doctype svg>",
        b"<!-- <html>", b"<?xml version='1.0'?><html>", b"<script>alert(1)</script><html>", "<html>".encode("utf-16"),
        b"MZ", b" ",
        b"<!--" + b"x" * 70_000 + b"--><html>",
    ],
)  # fmt: skip
def test_what_does_not_begin_as_html_goes_with_its_row(reporting: Reporting, body: bytes):
    row, _ = reporting.announce(size_bytes=len(body))
    reporting.bring(row, body)
    with pytest.raises(BadReportError, match="does not begin as HTML does"):
        reporting.keeper.uploaded(ANN, row.id)
    assert reporting.files() == []
    with pytest.raises(NotFound, match="Account acme has no report 1"):
        reporting.keeper.uploaded(ANN, row.id)


def test_another_size_than_was_announced_is_refused(reporting: Reporting):
    row, _ = reporting.announce()
    reporting.bring(row, HTML + b" ")
    with pytest.raises(BadReportError, match=f"has {len(HTML) + 1} bytes and {len(HTML)} were announced"):
        reporting.keeper.uploaded(ANN, row.id)
    assert reporting.files() == []


def test_one_whose_file_has_not_come_waits_for_it(reporting: Reporting):
    row, _ = reporting.announce()
    with pytest.raises(NotFound, match=r"No file has come for report 1\. Upload it within 15 minutes"):
        reporting.keeper.uploaded(ANN, row.id)
    reporting.bring(row)
    assert reporting.keeper.uploaded(ANN, row.id).kept_at is not None


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ({"filename": ""}, "$.filename"), ({"filename": "x" * 201}, "$.filename"),
        ({"filename": "../x.html"}, "$.filename"), ({"filename": "a\\b.html"}, "$.filename"),
        ({"filename": ".."}, "$.filename"), ({"filename": "a\nb"}, "$.filename"),
        ({"filename": "a\x00.html"}, "$.filename"), ({"filename": "a\u202e.html"}, "$.filename"),
        ({"title": ""}, "$.title"), ({"title": "x" * 201}, "$.title"), ({"user": "x" * 201}, "$.user"),
        ({"user": "\x1b[2J"}, "$.user"), ({"size_bytes": 0}, "$.size_bytes"), ({"size_bytes": -1}, "$.size_bytes"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_of_a_report_is_refused(reporting: Reporting, told: dict[str, Any], place: str):
    with pytest.raises(BadMessage) as refused:
        reporting.announce(**told)
    assert refused.value.place == place
    assert reporting.keeper.page("acme", 10) == []


def test_the_largest_is_announced_and_one_byte_more_is_not(reporting: Reporting):
    assert reporting.announce(size_bytes=MAX_BYTES)[0].size_bytes == MAX_BYTES
    with pytest.raises(TooLarge, match="has 500,000,001 bytes, and 500,000,000 are taken at most"):
        reporting.announce(size_bytes=MAX_BYTES + 1)


def test_a_site_says_whose_a_report_is_and_a_person_cannot(reporting: Reporting):
    cluster = site("ingest", "report")
    told = [reporting.announce(by, user="eve")[0] for by in (cluster, ANN)]
    assert [(row.user, row.user_claimed) for row in told] == [("eve", True), ("ann", False)]
    assert reporting.announce(cluster)[0].user_claimed is False, "nobody was named"


@pytest.mark.parametrize("by", [GUEST, site("read", "ingest", "control", "admin")])
def test_who_may_not_report_brings_nothing(reporting: Reporting, by: Principal):
    row, _ = reporting.announce()
    reporting.bring(row)
    for act in (lambda: reporting.announce(by), lambda: reporting.keeper.uploaded(by, row.id)):
        with pytest.raises(PermissionDenied, match=r"needs (one that may report|a member)"):
            act()


def test_who_announced_one_says_when_it_is_there(reporting: Reporting):
    row, _ = reporting.announce()
    reporting.bring(row)
    with pytest.raises(PermissionDenied, match="is another's"):
        reporting.keeper.uploaded(BOB, row.id)
    with pytest.raises(NotFound):
        reporting.keeper.uploaded(EVE, row.id)
    assert reporting.keeper.uploaded(person("ann", key_id="another"), row.id).kept_at, "with any token of theirs"


CHANGERS = [(ANN, True), (BOB, False), (ADMIN, True), (GUEST, False), (site("report"), False), (site("admin"), True)]


@pytest.mark.parametrize(("by", "may"), CHANGERS)
@pytest.mark.parametrize("act", ["hide", "delete"])
def test_whose_it_is_and_admins_change_one(reporting: Reporting, by: Principal, may: bool, act: str):
    row, keeper = reporting.kept(), reporting.keeper

    def change() -> ReportRow:
        if act == "delete":
            return keeper.delete(by, row.id, reporting.note)
        return keeper.set_private(by, row.id, True, reporting.note)

    assert keeper.may_change(by, row) is may
    if may:
        change()
        assert reporting.noted == [row], "told before it was done"
        assert reporting.files() == ([] if act == "delete" else [f"private/{row.link}.html"])
    else:
        with pytest.raises(PermissionDenied, match="by whose it is"):
            change()
        assert reporting.noted == []
        assert reporting.files() == [f"public/{row.link}.html"]


def test_what_a_site_brought_is_that_token_s_and_not_of_who_is_named(reporting: Reporting):
    cluster = site("report")
    row = reporting.kept(cluster, user="bob")
    may = reporting.keeper.may_change
    assert [may(by, row) for by in (cluster, BOB, site("report", key_id="other"))] == [True, False, False]


def test_an_act_that_cannot_be_written_down_is_not_done(reporting: Reporting):
    row = reporting.kept()

    def fail(_row: ReportRow) -> None:
        raise OSError("the disk is full")

    for act in (lambda: reporting.keeper.delete(ANN, row.id, fail),
                lambda: reporting.keeper.set_private(ANN, row.id, True, fail)):  # fmt: skip
        with pytest.raises(OSError, match="full"):
            act()
    assert reporting.keeper.find("acme", row.id) == row
    assert reporting.files() == [f"public/{row.link}.html"]


def test_public_by_link_and_by_nothing_less(reporting: Reporting):
    row, keeper = reporting.kept(), reporting.keeper
    assert keeper.find_public("acme", row.id, row.link) == row
    hidden = reporting.kept(private=True)
    coming, _ = reporting.announce()
    wrong = row.link[:-1] + ("a" if row.link[-1] != "a" else "b")
    tries = [("acme", row.id, wrong), ("acme", row.id, ""), ("acme", row.id, "é" * 22),
             ("acme", hidden.id, hidden.link), ("acme", hidden.id, row.link),
             ("acme", 99, row.link), ("other", row.id, row.link),
             ("acme", coming.id, coming.link)]  # fmt: skip
    said = set[str]()
    for each in tries:
        with pytest.raises(NotFound) as refused:
            keeper.find_public(*each)
        said.add(str(refused.value))
    assert len(said) == 1, "nobody learns why"


def test_hidden_and_shown_again_by_the_same_link(reporting: Reporting):
    row, keeper = reporting.kept(), reporting.keeper
    assert keeper.set_private(ANN, row.id, True, reporting.note).private
    with pytest.raises(NotFound):
        keeper.find_public("acme", row.id, row.link)
    keeper.set_private(ANN, row.id, False, reporting.note)
    assert keeper.find_public("acme", row.id, row.link).link == row.link
    assert reporting.files() == [f"public/{row.link}.html"]


def test_an_account_that_wants_no_public_ones_has_none_at_once(reporting: Reporting, adapters: LocalAdapters):
    row, keeper = reporting.kept(), reporting.keeper
    coming, _ = reporting.announce()
    reporting.bring(coming)
    adapters.policies.set_wish("acme", "reports", {"public": "deny", "keep_days": None})
    with pytest.raises(NotFound):
        keeper.find_public("acme", row.id, row.link)
    assert keeper.policy("acme").is_private(row)
    with pytest.raises(PermissionDenied, match="Account acme wants no public reports"):
        keeper.set_private(ANN, row.id, False, reporting.note)
    kept = keeper.uploaded(ANN, coming.id)
    assert kept.private, "announced before, and hidden when it came"
    assert reporting.kept(private=False).private
    assert [name.partition("/")[0] for name in reporting.files()] == ["private", "private", "public"]


def test_one_that_is_deleted_in_the_moment_in_which_it_is_kept_leaves_no_file(
    reporting: Reporting, adapters: LocalAdapters, monkeypatch: pytest.MonkeyPatch
):
    row, _ = reporting.announce()
    reporting.bring(row)
    keep = adapters.report_files.keep

    def deleted_before(link: str, private: bool, version: str) -> None:
        reporting.keeper.delete(ADMIN, row.id, reporting.note)
        keep(link, private, version)

    monkeypatch.setattr(adapters.report_files, "keep", deleted_before)
    with pytest.raises(NotFound, match="has no report 1"):
        reporting.keeper.uploaded(ANN, row.id)
    assert reporting.files() == []


def test_what_is_brought_in_the_moment_after_the_look_is_not_kept(
    reporting: Reporting, adapters: LocalAdapters, monkeypatch: pytest.MonkeyPatch
):
    row, _ = reporting.announce()
    reporting.bring(row)
    keep = adapters.report_files.keep

    def another_before(link: str, private: bool, version: str) -> None:
        reporting.bring(row, b"%PDF-1.7".ljust(len(HTML)))
        keep(link, private, version)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(adapters.report_files, "keep", another_before)
        with pytest.raises(Conflict, match="Another file was brought for report 1"):
            reporting.keeper.uploaded(ANN, row.id)
    with pytest.raises(BadReportError, match="does not begin as HTML does"):
        reporting.keeper.uploaded(ANN, row.id)
    assert reporting.files() == []


def test_one_that_is_hidden_in_the_moment_in_which_it_is_kept_is_private(
    reporting: Reporting, adapters: LocalAdapters, monkeypatch: pytest.MonkeyPatch
):
    row, _ = reporting.announce()
    reporting.bring(row)
    keep = adapters.report_files.keep

    def hidden_after(link: str, private: bool, version: str) -> None:
        keep(link, private, version)
        adapters.reports.set_private("acme", row.id, True)

    monkeypatch.setattr(adapters.report_files, "keep", hidden_after)
    assert reporting.keeper.uploaded(ANN, row.id).private
    assert reporting.files() == [f"private/{row.link}.html"]


@pytest.mark.parametrize("step", ["reports.remove", "report_files.delete"])
def test_a_deletion_that_dies_on_the_way_is_done_again(
    reporting: Reporting, adapters: LocalAdapters, monkeypatch: pytest.MonkeyPatch, step: str
):
    row = reporting.kept()
    port, _, name = step.partition(".")
    with monkeypatch.context() as patch:

        def die(*_: object) -> None:
            raise ConnectionError("gone")

        patch.setattr(getattr(adapters, port), name, die)
        with pytest.raises(ConnectionError):
            reporting.keeper.delete(ANN, row.id, reporting.note)
    reporting.keeper.delete(ANN, row.id, reporting.note)
    assert reporting.files() == []
    with pytest.raises(Missing):
        adapters.reports.get("acme", row.id)


def test_links_are_128_random_bits(adapters: LocalAdapters):
    asked = list[int]()

    def random(n: int) -> bytes:
        asked.append(n)
        return b"\xff" * n

    row, _ = ReportKeeper(adapters, random).offer(ANN, Announced(filename="a.html", size_bytes=1))
    assert asked == [16]
    assert row.link == "7n42DGM5Tflk9n8mt7Fhc7", "2**128 - 1 in base62"
