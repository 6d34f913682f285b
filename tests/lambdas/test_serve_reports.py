"""Reports on their way in and out of a real server: what is taken, what is refused and why, what browsers are told."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest

from daskscope_lambdas import isolation
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.ports import Missing, ReportFiles
from daskscope_lambdas.wiring import LocalAdapters, connect
from tests.lambdas.serving import Serving

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")

LINK = "0123456789abcdefghijKL"
OTHER = "9123456789abcdefghijKL"
HTML = b"<!doctype html><title>report</title>"
Offer = Callable[..., str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("serve"), "--allow-host", "hub.example") as running:
        yield running


@pytest.fixture(scope="module")
def reports(server: Serving) -> Iterator[httpx.Client]:
    """A browser at the other origin."""
    assert server.process.stdout
    told = [server.process.stdout.readline().decode() for _ in range(2)]
    url = next(line.split()[-1] for line in told if line.startswith("reports are at"))
    assert url != server.url
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
        yield http


@pytest.fixture
def world(server: Serving) -> Iterator[LocalAdapters]:
    world = connect(LocalEnv(data=str(server.data)))
    yield world
    for link in (LINK, OTHER):
        world.report_files.discard(link)
        world.report_files.delete(link)
    world.close()


@pytest.fixture
def files(world: LocalAdapters) -> ReportFiles:
    return world.report_files


@pytest.fixture
def offer(world: LocalAdapters) -> Offer:
    def offered(size_bytes: int = len(HTML), link: str = LINK, good_s: float = 900) -> str:
        return "/" + world.report_files.offer(link, size_bytes, world.clock.now() + good_s).url

    return offered


def brought(files: ReportFiles, link: str = LINK) -> bool:
    try:
        files.arrived(link, 0)
    except Missing:
        return False
    return True


@pytest.mark.parametrize("how", [HTML, [HTML[:7], HTML[7:]]], ids=["at once", "in parts of no announced size"])
def test_a_report_comes_in(server: Serving, files: ReportFiles, offer: Offer, how: bytes | list[bytes]) -> None:
    body = how if isinstance(how, bytes) else iter(how)
    assert server.http.put(offer(), content=body, headers={"Content-Type": "text/html"}).status_code == 204
    assert files.arrived(LINK, 100)[:2] == (len(HTML), HTML)


def test_a_large_one_comes_in_while_others_are_answered(server: Serving, files: ReportFiles, offer: Offer) -> None:
    """It is on its way when the server is asked for something else."""
    part, n_parts = b"x" * (1 << 20), 8
    answered = list[int]()

    def parts() -> Iterator[bytes]:
        for n in range(n_parts):
            yield part
            if n == n_parts // 2:
                answered.append(httpx.get(f"{server.url}/healthz", trust_env=False, timeout=60).status_code)

    told = server.http.put(offer(n_parts << 20), content=parts())
    assert told.status_code == 204, told.text
    assert answered == [200]
    assert files.arrived(LINK, 3)[:2] == (n_parts << 20, b"xxx")


def changed(name: str, value: str) -> Callable[[str], str]:
    return lambda url: re.sub(rf"(?<={name}=)[^&]+", value, url)


REFUSED = {
    "larger than announced": (lambda url: url, HTML + b"x", {}, 413, "too-large"),
    "smaller than announced": (lambda url: url, HTML[1:], {}, 422, "bad-report"),
    "nothing": (lambda url: url, b"", {}, 422, "bad-report"),
    "another size that was not announced": (changed("size", "35"), HTML[1:], {}, 403, "permission-denied"),
    "a size without end": (changed("size", "999999999999"), HTML, {}, 403, "permission-denied"),
    "later than allowed": (changed("until", "9999999999"), HTML, {}, 403, "permission-denied"),
    "another signature": (changed("sig", "A" * 43), HTML, {}, 403, "permission-denied"),
    "no ASCII in the signature": (changed("sig", "%C3%A4"), HTML, {}, 403, "permission-denied"),
    "no signature": (lambda url: url.rpartition("&")[0], HTML, {}, 403, "permission-denied"),
    "no parameters": (lambda url: url.partition("?")[0], HTML, {}, 403, "permission-denied"),
    "one more parameter": (lambda url: url + "&x=1", HTML, {}, 403, "permission-denied"),
    "the first parameter twice": (lambda url: url + "&size=5", HTML, {}, 403, "permission-denied"),
    "another link": (lambda url: url.replace(LINK, OTHER), HTML, {}, 403, "permission-denied"),
    "out of the folder": (lambda url: url.replace(LINK, "..%2F..%2Fx"), HTML, {}, 403, "permission-denied"),
    "another kind": (lambda url: url, HTML, {"Content-Type": "image/svg+xml"}, 415, "unsupported-media-type"),
    "a script": (lambda url: url, HTML, {"Content-Type": "text/javascript"}, 415, "unsupported-media-type"),
    "compressed": (lambda url: url, HTML, {"Content-Encoding": "gzip"}, 415, "unsupported-media-type"),
}


@pytest.mark.parametrize(("asked", "body", "headers", "status", "code"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("is_announced", [True, False], ids=["", "of no announced size"])
def test_what_was_not_let_in_is_refused_with_the_reason(
    server: Serving, files: ReportFiles, offer: Offer, asked: Callable[[str], str], body: bytes,
    headers: dict[str, str], status: int, code: str, is_announced: bool,
) -> None:  # fmt: skip
    content = body if is_announced else iter([body])
    told = server.http.put(asked(offer()), content=content, headers=headers)
    assert (told.status_code, told.json()["error"]["code"]) == (status, code)
    assert len(told.json()["error"]["message"]) > 30
    assert not brought(files)
    assert not brought(files, OTHER)
    assert list((server.data / "reports" / "drafts").iterdir()) == []


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PATCH"])
def test_a_report_is_brought_by_put_alone(server: Serving, files: ReportFiles, offer: Offer, method: str) -> None:
    told = server.http.request(method, offer(), content=HTML)
    assert (told.status_code, told.headers["allow"]) == (405, "PUT")
    assert not brought(files)


def test_an_offer_ends(server: Serving, world: LocalAdapters, offer: Offer) -> None:
    told = server.http.put(offer(good_s=-1), content=HTML)
    assert (told.status_code, "is over" in told.text) == (403, True)
    assert not brought(world.report_files)


def test_what_is_kept_is_not_brought_again(server: Serving, files: ReportFiles, offer: Offer) -> None:
    url = offer()
    assert server.http.put(url, content=HTML).status_code == 204
    files.keep(LINK, private=False)
    again = server.http.put(url, content=HTML.replace(b"report", b"phishy"))
    assert (again.status_code, again.json()["error"]["code"]) == (409, "conflict")
    assert not brought(files)


def test_one_that_is_deleted_is_not_brought_any_more(server: Serving, files: ReportFiles, offer: Offer) -> None:
    url = offer()
    files.discard(LINK)
    told = server.http.put(url, content=HTML)
    assert (told.status_code, told.json()["error"]["code"]) == (404, "not-found")
    assert not brought(files)


def test_of_two_that_are_brought_before_either_is_kept_the_last_one_counts(
    server: Serving, files: ReportFiles, offer: Offer
) -> None:
    """As S3 has it, so that whoever heard no answer may bring theirs again."""
    url, last = offer(), HTML.replace(b"report", b"second")
    assert [server.http.put(url, content=body).status_code for body in (HTML, last)] == [204, 204]
    arrived = files.arrived(LINK, 100)
    assert (arrived.size_bytes, arrived.head) == (len(last), last)


def test_one_that_is_refused_while_it_comes_hears_why(server: Serving, offer: Offer) -> None:
    """More than anybody was let bring: the server reads on for a while, so that who only writes gets to see it."""
    told = server.http.put(offer(), content=(b"x" * (1 << 16) for _ in range(100)))
    assert told.status_code == 413


@pytest.fixture
def kept(server: Serving, files: ReportFiles, offer: Offer) -> str:
    """A report's address, as a page has it."""
    server.http.put(offer(), content=HTML).raise_for_status()
    files.keep(LINK, private=False)
    return "/" + files.address(LINK, private=False)


def test_a_browser_gets_a_report_and_is_told_to_trust_it_with_nothing(reports: httpx.Client, kept: str) -> None:
    told = reports.get(kept)
    assert (told.status_code, told.content) == (200, HTML)
    assert told.headers["content-type"] == "text/html; charset=utf-8"
    assert told.headers["content-security-policy"].startswith("sandbox allow-scripts; default-src 'none'; ")
    assert reports.head(kept).headers["content-length"] == str(len(HTML))


def test_every_reply_of_that_origin_is_isolated(
    server: Serving, reports: httpx.Client, files: ReportFiles, kept: str
) -> None:
    replies = [
        reports.get(kept),
        reports.get("/" + files.address(LINK, private=True, download="report.html")),
        reports.head(kept),
        reports.post(kept, content=b"x"),
        reports.options(kept),
        reports.get(kept, headers={"Host": "evil.example"}),
        reports.get(kept.partition("?")[0]),
        reports.get(kept + "x"),
        reports.get("/"),
        reports.get("/healthz"),
        reports.get("/api/v1/whoami", headers=server.bearer),
        reports.get("/local/analytics"),
        reports.put(kept, content=HTML),
        reports.get("/..%2F..%2Fregistry.sqlite"),
        reports.get(f"/keys/addresses?{urlencode({'until': '9999999999', 'sig': 'x'})}"),
    ]
    files.delete(LINK)
    replies.append(reports.get(kept))
    statuses = [200, 200, 200, 405, 405, 421, 403, 403, 403, 403, 403, 403, 405, 403, 403, 404]
    assert [reply.status_code for reply in replies] == statuses
    for reply in replies:
        assert {name: reply.headers.get(name) for name in isolation.HEADERS} == dict(isolation.HEADERS), reply.url
        assert reply.headers["cache-control"] == "private, no-store"
        assert "set-cookie" not in reply.headers


def test_a_download_is_saved_under_its_name_and_not_shown(reports: httpx.Client, files: ReportFiles, kept: str) -> None:
    told = reports.get("/" + files.address(LINK, private=False, download='a "b"\r\nSet-Cookie: x=1.html'))
    assert told.content == HTML
    assert told.headers["content-disposition"] == (
        "attachment; filename*=UTF-8''a%20%22b%22%0D%0ASet-Cookie%3A%20x%3D1.html"
    )
    assert "set-cookie" not in told.headers


def test_an_address_is_dead_once_the_report_is_elsewhere(reports: httpx.Client, files: ReportFiles, kept: str) -> None:
    files.move(LINK, private=True)
    assert reports.get(kept).status_code == 404
    assert reports.get("/" + files.address(LINK, private=True)).content == HTML


def test_pages_have_no_reports_and_reports_no_pages(server: Serving, reports: httpx.Client, kept: str) -> None:
    assert server.http.get(kept).status_code in (401, 404)
    assert reports.get("/local/analytics").status_code == 403


@pytest.mark.parametrize("host", ["localhost:9999", "127.0.0.1", "[::1]:8790", "hub.example"])
def test_the_origin_goes_by_the_same_names_as_the_server(reports: httpx.Client, kept: str, host: str) -> None:
    assert reports.get(kept, headers={"Host": host}).status_code == 200
