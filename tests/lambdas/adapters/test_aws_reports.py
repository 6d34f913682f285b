"""What S3 refuses of who was let bring a report: the emulator judges a form by its policy, as S3 does; and by its
signature where it asks who may (tests/infra/test_reports_origin.py)."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import httpx
import pytest

from daskscope_lambdas.adapters.aws import Clients, S3Reports
from daskscope_lambdas.adapters.system import SystemClock
from daskscope_lambdas.isolation import SEEN_S
from daskscope_lambdas.ports import Conflict, Missing, Upload
from daskscope_lambdas.testing import FakeClock
from tests.aws_world import make_world, point_at
from tests.emulator import Emulator

LINK = "0123456789abcdefghijKL"
OTHER = "9123456789abcdefghijKL"
HTML = b"<!doctype html><title>report</title>"


@pytest.fixture
def files(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Reports]:
    point_at(emulator, monkeypatch)
    env = make_world(emulator)
    with closing(Clients(emulator.url)) as clients:
        yield S3Reports(clients.s3, env.reports_bucket, SystemClock())


def offered(files: S3Reports) -> Upload:
    return files.offer(LINK, len(HTML), time.time() + 900)


def bring(upload: Upload, body: bytes = HTML, kind: str = "text/html") -> httpx.Response:
    file = ("report.html", body, kind)
    return httpx.post(upload.url, data=dict(upload.fields), files={"file": file}, trust_env=False)


def told(upload: Upload, **fields: str) -> Upload:
    return replace(upload, fields={**upload.fields, **fields})


REFUSED: dict[str, tuple[Callable[[Upload], Upload], bytes]] = {
    "larger than announced": (lambda upload: upload, HTML + b"x"),
    "smaller than announced": (lambda upload: upload, HTML[1:]),
    "nothing": (lambda upload: upload, b""),
    "another link": (lambda upload: told(upload, key=f"incoming/{OTHER}"), HTML),
    "where kept ones are": (lambda upload: told(upload, key=f"public/{LINK}.html"), HTML),
    "out of the folder": (lambda upload: told(upload, key=f"incoming/../public/{LINK}.html"), HTML),
    "named by the sender": (lambda upload: told(upload, key="${filename}"), HTML),
    "another kind": (lambda upload: told(upload, **{"Content-Type": "image/svg+xml"}), HTML),
    "readable for all": (lambda upload: told(upload, acl="public-read"), HTML),
    "another day": (lambda upload: told(upload, **{"x-amz-date": "20200101T000000Z"}), HTML),
    "unsigned": (lambda u: replace(u, fields={k: v for k, v in u.fields.items() if k != "x-amz-signature"}), HTML),
}


@pytest.mark.parametrize(("changed", "body"), REFUSED.values(), ids=REFUSED)
def test_what_was_not_let_in_is_refused(files: S3Reports, changed: Callable[[Upload], Upload], body: bytes) -> None:
    answer = bring(changed(offered(files)), body)
    assert 400 <= answer.status_code < 500, answer.text
    assert list(_keys(files)) == []


def test_an_offer_ends(files: S3Reports) -> None:
    ended = S3Reports(files._client, files._bucket, FakeClock(time.time() + 3600))
    answer = bring(ended.offer(LINK, len(HTML), time.time() - 1))
    assert (answer.status_code, "xpired" in answer.text) == (403, True)
    assert list(_keys(files)) == []


def test_what_is_sent_again_after_it_was_kept_changes_nothing(files: S3Reports) -> None:
    upload = offered(files)
    assert bring(upload).status_code == 204
    files.keep(LINK, private=False)
    assert bring(upload, HTML.replace(b"report", b"phishy")).status_code == 204
    files.keep(LINK, private=False)
    assert list(_keys(files)) == [f"public/{LINK}.html"]
    with files._about("kept"):
        kept = files._client().get_object(Bucket=files._bucket, Key=f"public/{LINK}.html")
    assert kept["Body"].read() == HTML
    assert kept["ContentType"] == "text/html; charset=utf-8"
    with pytest.raises(Missing):
        files.arrived(LINK, 1)


def test_who_looks_at_a_private_one_over_and_over_makes_one_copy_whose_name_the_link_does_not_tell(
    files: S3Reports,
) -> None:
    clock = FakeClock(1_700_000_010)  # as S3Reports counts: at the start of what looks share
    first, second = (S3Reports(files._client, files._bucket, clock) for _ in range(2))
    assert bring(offered(files)).status_code == 204
    first.keep(LINK, private=True)
    seen = {each.address(LINK, private=True) for each in (first, second, first)}
    assert len(seen) == 1
    assert sorted(_keys(files)) == [f"private/{LINK}.html", *seen]
    assert LINK not in "".join(seen)
    clock.advance(SEEN_S / 2)
    seen.add(second.address(LINK, private=True))
    first.move(LINK, private=False)
    first.move(LINK, private=True)
    seen.add(first.address(LINK, private=True))
    assert len(seen) == 3, "it has another name after it was public"
    for address in seen:
        until = int(address.removeprefix("shown/").partition("-")[0])
        assert clock.now() < until <= clock.now() + SEEN_S


def test_a_large_one_that_was_changed_is_not_kept_either(files: S3Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope_lambdas.adapters.aws.report_files._AT_ONCE_BYTES", 8)
    upload = offered(files)
    bring(upload)
    looked_at = files.arrived(LINK, 1).version
    bring(upload, HTML.replace(b"report", b"phishy"))
    with pytest.raises(Conflict):
        files.keep(LINK, False, looked_at)
    assert list(_keys(files)) == [f"incoming/{LINK}"]


def test_addresses_are_of_the_buckets_own_region(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new bucket is known nowhere else for a while, and elsewhere no signature is good that names its host."""
    for name, value in (("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "eu-central-1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with closing(Clients()) as clients:
        upload = S3Reports(clients.s3, "reports", SystemClock()).offer(LINK, 5, time.time() + 900)
        saved = clients.s3().generate_presigned_url("get_object", Params={"Bucket": "reports", "Key": "k"})
    assert upload.url == "https://reports.s3.eu-central-1.amazonaws.com/"
    assert saved.startswith("https://reports.s3.eu-central-1.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&")


def _keys(files: S3Reports) -> Iterator[str]:
    found = files._client().list_objects_v2(Bucket=files._bucket)
    yield from (each.get("Key", "") for each in found.get("Contents", []))
