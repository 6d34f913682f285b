import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from daskscope_lambdas.adapters.aws import S3Reports
from daskscope_lambdas.isolation import SEEN_S
from daskscope_lambdas.ports import Conflict, Missing, ReportDraft, ReportFiles, ReportRow, StoreError
from daskscope_lambdas.service.reports import drop
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters, LocalAdapters

LINK = "0123456789abcdefghijKL"
OTHER = "9123456789abcdefghijKL"
HTML = b"<!doctype html><title>report</title>"
NO_LINKS = ["", "short", LINK + "0", "../../registry.sqlite0", "0123456789abcdefghij/L", "0123456789abcdefghijK\n"]


class Outside:
    """Who brings a file and looks at one, past the ports: in AWS that is between them and S3 or CloudFront."""

    def __init__(self, world: Adapters, clock: FakeClock) -> None:
        self._world, self._clock = world, clock
        self.files = world.report_files

    def bring(self, link: str, body: bytes) -> None:
        upload = self.files.offer(link, len(body), self._clock.now() + 900)
        assert upload.expires_at == self._clock.now() + 900
        if isinstance(self._world, LocalAdapters):
            host, url = self._world.report_host, urlsplit(upload.url)
            assert (upload.method, url.path) == ("PUT", f"api/v1/uploads/{link}")
            assert host.admit(link, dict(parse_qsl(url.query))) == len(body)
            draft = host.draft()
            draft.write_bytes(body)
            host.bring(link, draft)
            assert not draft.exists()
        else:
            assert upload.method == "POST"
            told = httpx.post(upload.url, data=dict(upload.fields), files={"file": body}, trust_env=False)
            assert told.status_code == 204, told.text

    def see(self, address: str) -> bytes:
        """Raises StoreError if nothing is there to see."""
        if isinstance(self._world, LocalAdapters):
            url = urlsplit(address)
            return self._world.report_host.find(url.path, dict(parse_qsl(url.query)))[0].read_bytes()
        if urlsplit(address).scheme:
            told = httpx.get(address, trust_env=False)
            if told.is_success:
                return told.content
            raise StoreError(told.text)
        # As CloudFront does, whose function says until when; the stack's tests hold that.
        folder, _, name = address.partition("/")
        if folder == "shown" and int(name.partition("-")[0]) <= self._clock.now():
            raise StoreError("over")
        assert folder in ("public", "shown"), "CloudFront reads nothing else"
        files = self.files
        assert isinstance(files, S3Reports)
        with files._about(address):
            return files._client().get_object(Bucket=files._bucket, Key=address)["Body"].read()


@pytest.fixture
def outside(world: Adapters, clock: FakeClock) -> Outside:
    return Outside(world, clock)


@pytest.fixture
def files(world: Adapters) -> ReportFiles:
    return world.report_files


def test_what_was_brought_has_arrived(files: ReportFiles, outside: Outside) -> None:
    outside.bring(LINK, HTML)
    assert files.arrived(LINK, 9)[:2] == (len(HTML), HTML[:9])
    assert files.arrived(LINK, 1000)[:2] == (len(HTML), HTML)
    with pytest.raises(Missing):
        files.arrived(OTHER, 9)


def test_nothing_is_there_before_it_was_brought(files: ReportFiles, clock: FakeClock) -> None:
    files.offer(LINK, 10, clock.now() + 900)
    with pytest.raises(Missing):
        files.arrived(LINK, 9)
    with pytest.raises(Missing):
        files.keep(LINK, private=False)
    with pytest.raises(Missing):
        files.move(LINK, private=True)
    with pytest.raises(Missing):
        files.address(LINK, private=True)
    files.discard(LINK)
    files.delete(LINK)


def test_what_was_discarded_can_be_brought_again_and_not_be_kept_meanwhile(
    files: ReportFiles, outside: Outside
) -> None:
    outside.bring(LINK, b"no report")
    files.discard(LINK)
    with pytest.raises(Missing):
        files.keep(LINK, private=False)
    outside.bring(LINK, HTML)
    files.keep(LINK, private=False)
    assert outside.see(files.address(LINK, private=False)) == HTML


@pytest.mark.parametrize("private", [False, True])
def test_what_is_kept_is_seen_and_has_not_to_be_brought_any_more(
    files: ReportFiles, outside: Outside, private: bool
) -> None:
    outside.bring(LINK, HTML)
    files.keep(LINK, private)
    assert outside.see(files.address(LINK, private)) == HTML
    with pytest.raises(Missing):
        files.arrived(LINK, 9)
    files.keep(LINK, private)


def test_what_is_kept_stays_as_it_was_whatever_is_brought_after_it(world: Adapters, outside: Outside) -> None:
    files = world.report_files
    outside.bring(LINK, HTML)
    files.keep(LINK, private=False)
    if isinstance(world, LocalAdapters):
        host = world.report_host
        draft = host.draft()
        draft.write_bytes(b"another")
        host.bring(LINK, draft)  # by who was admitted before it was kept
    else:
        outside.bring(LINK, b"another")  # S3 knows nothing of what is kept
    files.keep(LINK, private=True)
    assert outside.see(files.address(LINK, private=False)) == HTML
    with pytest.raises(Missing):
        files.arrived(LINK, 9)


def test_what_was_brought_in_place_of_what_was_looked_at_is_not_kept(files: ReportFiles, outside: Outside) -> None:
    outside.bring(LINK, HTML)
    looked_at = files.arrived(LINK, 9).version
    outside.bring(LINK, HTML.replace(b"report", b"phishy"))
    with pytest.raises(Conflict):
        files.keep(LINK, False, looked_at)
    with pytest.raises(Missing):
        files.address(LINK, private=True)
    outside.bring(LINK, HTML)
    files.keep(LINK, False, files.arrived(LINK, 9).version)
    files.keep(LINK, False, looked_at)
    assert outside.see(files.address(LINK, private=False)) == HTML


def test_whoever_is_second_to_keep_one_finds_it_kept(
    files: ReportFiles, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that say at once that it is there: one has kept it after the other saw that nobody had."""
    outside.bring(LINK, HTML)
    adapter: Any = files
    found, asked = adapter._where, list[str]()

    def nobody_had(link: str) -> object:
        asked.append(link)
        if len(asked) == 1:
            files.keep(link, private=False)
            return None
        return found(link)

    monkeypatch.setattr(adapter, "_where", nobody_had)
    files.keep(LINK, private=False)
    assert len(asked) > 2
    assert outside.see(files.address(LINK, private=False)) == HTML


def test_what_nobody_waits_for_any_more_is_not_taken(adapters: LocalAdapters, clock: FakeClock) -> None:
    """On a disk. S3 takes it, where nobody gets it."""
    files, host = adapters.report_files, adapters.report_host
    for gone in (files.discard, lambda link: drop(adapters.reports, files, row(adapters, link, clock))):
        told = dict(parse_qsl(urlsplit(files.offer(LINK, len(HTML), clock.now() + 900).url).query))
        assert host.admit(LINK, told) == len(HTML)
        gone(LINK)
        with pytest.raises(Missing, match="Nobody waits for this report"):
            host.admit(LINK, told)
        with pytest.raises(Missing):
            host.check_awaited(LINK)


def row(world: Adapters, link: str, clock: FakeClock) -> ReportRow:
    draft = ReportDraft(
        account="acme", link=link, filename="r.html", title=None, private=False, user=None, user_claimed=False,
        key_id="k", size_bytes=len(HTML), created_at=clock.now(),
    )  # fmt: skip
    return world.reports.add(draft)


def test_a_report_moves_and_its_public_address_is_dead_then(files: ReportFiles, outside: Outside) -> None:
    outside.bring(LINK, HTML)
    files.keep(LINK, private=False)
    public = files.address(LINK, private=False)
    files.move(LINK, private=True)
    files.move(LINK, private=True)
    with pytest.raises(StoreError):
        outside.see(public)
    assert outside.see(files.address(LINK, private=True)) == HTML
    files.move(LINK, private=False)
    assert outside.see(files.address(LINK, private=False)) == HTML


def test_a_deleted_report_is_dead_at_all_addresses_within_a_minute(
    files: ReportFiles, outside: Outside, clock: FakeClock
) -> None:
    seen = list[str]()
    for link, private in ((LINK, False), (OTHER, True)):
        outside.bring(link, HTML)
        files.keep(link, private)
        seen.append(files.address(link, private))
        files.delete(link)
        files.delete(link)
    clock.advance(60)
    for address in seen:
        with pytest.raises(StoreError):
            outside.see(address)
    with pytest.raises(Missing):
        files.address(LINK, private=True)


def test_a_private_address_is_good_for_a_while_only(files: ReportFiles, outside: Outside, clock: FakeClock) -> None:
    outside.bring(LINK, HTML)
    files.keep(LINK, private=True)
    first = files.address(LINK, private=True)
    clock.advance(SEEN_S / 2 - 1)
    assert outside.see(first) == HTML
    clock.advance(SEEN_S / 2 + 1)
    with pytest.raises(StoreError):
        outside.see(first)
    assert outside.see(files.address(LINK, private=True)) == HTML


def test_one_that_is_kept_as_public_may_be_shown_as_if_it_were_private(files: ReportFiles, outside: Outside) -> None:
    """An account that allows no public ones is obeyed before its files are moved."""
    outside.bring(LINK, HTML)
    files.keep(LINK, private=False)
    assert outside.see(files.address(LINK, private=True)) == HTML


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("name", ["dask-report.html", 'ü "; filename=x.exe\r\n.html'])
def test_a_download_has_the_name_that_was_given(world: Adapters, outside: Outside, private: bool, name: str) -> None:
    outside.bring(LINK, HTML)
    world.report_files.keep(LINK, private)
    address = world.report_files.address(LINK, private, download=name)
    assert outside.see(address) == HTML
    if isinstance(world, LocalAdapters):
        url = urlsplit(address)
        assert world.report_host.find(url.path, dict(parse_qsl(url.query)))[1] == name
    else:
        said = httpx.get(address, trust_env=False).headers["content-disposition"]
        kind, _, coded = said.partition("; filename*=UTF-8''")
        assert kind == "attachment"
        assert httpx.URL(f"http://x/{coded}").path == f"/{name}"
        assert coded.isascii()
        assert coded.isprintable()


@pytest.mark.parametrize("link", NO_LINKS)
def test_what_can_be_no_link_is_refused(files: ReportFiles, clock: FakeClock, link: str) -> None:
    with pytest.raises(ValueError, match="no link of a report"):
        files.offer(link, 10, clock.now() + 900)
    with pytest.raises(ValueError, match="no link of a report"):
        files.keep(link, private=False)
    with pytest.raises(ValueError, match="no link of a report"):
        files.address(link, private=False)
    with pytest.raises(ValueError, match="no link of a report"):
        files.delete(link)


def test_tidying_leaves_what_is_on_its_way_and_what_is_kept(
    files: ReportFiles, outside: Outside, clock: FakeClock
) -> None:
    outside.bring(LINK, HTML)
    files.keep(LINK, private=False)
    outside.bring(OTHER, HTML)
    files.tidy()
    assert files.arrived(OTHER, 0)[:2] == (len(HTML), b"")
    assert outside.see(files.address(LINK, private=False)) == HTML


def test_a_file_in_several_parts_is_kept_whole(
    files: ReportFiles, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daskscope_lambdas.adapters.aws.report_files._AT_ONCE_BYTES", 5 << 20)
    large = HTML + os.urandom(11 << 20)
    outside.bring(LINK, large)
    files.keep(LINK, private=True)
    assert outside.see(files.address(LINK, private=True)) == large


def test_what_was_brought_and_never_kept_goes_after_a_day(adapters: LocalAdapters, tmp_path: Path) -> None:
    """On a disk; in S3 by the bucket's rules, which the stack's tests hold."""
    outside = Outside(adapters, clock := FakeClock())
    outside.bring(LINK, HTML)
    adapters.report_host.draft()
    brought = [
        path for path in (tmp_path / "data" / "reports").rglob("*") if path.is_file() and "keys" not in str(path)
    ]
    assert len(brought) == 2
    for path in brought:
        os.utime(path, (clock.now() - 86_400, clock.now() - 86_400))
    adapters.report_files.tidy()
    with pytest.raises(Missing):
        adapters.report_files.arrived(LINK, 9)
    assert not any(path.exists() for path in brought)
