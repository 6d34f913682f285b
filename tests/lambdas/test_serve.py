import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

import daskscope
from daskscope import wire
from daskscope.compression import SAMPLED, Encoding, compress
from daskscope.outcome import Outcome
from daskscope.sender import Sender
from daskscope.testing import exception, message
from daskscope.transport import Http
from daskscope_lambdas.admin_command import admin
from daskscope_lambdas.embedded.credentials import os_user
from daskscope_lambdas.embedded.listening import known_as
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.service.gate import Gate
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import connect
from tests.lambdas.serving import Serving, children, lives, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("serve")) as running:
        yield running


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def post(server: Serving, posted: wire.Message) -> httpx.Response:
    body, encoding = compress(wire.encode(posted))
    return server.http.post(wire.PATH, content=body, headers={**server.bearer, "Content-Encoding": encoding})


def test_what_lies_where(server: Serving):
    assert mode(server.data) == mode(server.rendezvous().parent) == 0o700
    assert mode(server.data / "token") == mode(server.rendezvous()) == 0o600
    assert server.met() == {
        "url": server.url, "token": server.token, "ingest_token": server.ingest_token,
        "pid": server.process.pid, "data": str(server.data),
    }  # fmt: skip
    assert server.http.get("/healthz").text == "ok\n"


def test_from_post_to_page(server: Serving):
    reply = post(server, message(exceptions=[exception(text="no such column")])).raise_for_status().json()
    page = server.http.get("/" + reply["url"])
    assert (page.status_code, "demo" in page.text) == (200, True), "the live row shows at once"
    until(lambda: server.api(f"local/clusters/{reply['id']}/exceptions")["items"])
    assert "no such column" in server.http.get("/" + reply["url"]).text


def test_what_cannot_be_kept_is_put_aside_and_sent_back_while_the_server_runs(server: Serving):
    def admin_says(*arguments: str) -> str:
        done = CliRunner().invoke(admin, [*arguments, "--data", str(server.data)])
        assert done.exit_code == 0, done.output
        return done.output

    world = connect(LocalEnv(data=str(server.data)))
    try:
        world.queue.send("poison")
        until(lambda: [*world.objects.list("dead/unread/")])
        (first,) = world.objects.list("dead/unread/")
        (letter,) = json.loads(admin_says("dead-letters", "--json"))
        assert "no envelope" in letter["reason"]
        assert admin_says("replay", "--id", letter["id"]) == "1 sent back into the queue, 0 left.\n"
        until(lambda: [*world.objects.list("dead/unread/")] not in ([], [first]))
        (again,) = json.loads(admin_says("dead-letters", "--json"))
        assert again | {"died": ""} == letter | {"died": ""}
    finally:
        world.close()


def test_a_plugin_sends_after_the_sample_once_the_server_said_that_it_takes_it(server: Serving):
    encodings = list[str]()

    class Noting(Http):
        def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
            encodings.append(encoding)
            return super().deliver(name, body, encoding, is_own=is_own)

    cluster = "5a" * 16
    sender = Sender(Noting(server.url, server.ingest_token), lambda _: None)
    sender.start()
    for seq in range(3):
        sender.put(message(cluster=cluster, seq=seq, totals=wire.Totals(n_tasks=100 + seq)))
        until(lambda seq=seq: sender.n_delivered == seq + 1)
    sender.close()
    assert encodings == ["zstd", SAMPLED[0], SAMPLED[0]]
    assert server.api(f"local/clusters/{cluster}")["n_tasks"] == 102
    assert not sender.lost


def test_head_tells_what_get_would(server: Serving):
    asked, had = server.http.head("/healthz"), server.http.get("/healthz")
    assert (asked.status_code, asked.content, asked.headers["content-length"]) == (200, b"", str(len(had.content)))


def test_a_large_body_gets_413(server: Serving):
    answer = server.http.post(wire.PATH, content=b"x" * 5_000_000, headers=server.bearer)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too-large")


def test_an_endless_body_gets_413(server: Serving):
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 1 << 30:
            sent += 1 << 16
            yield b"x" * (1 << 16)

    with httpx.Client(base_url=server.url, trust_env=False, timeout=30) as http:
        answer = http.post(wire.PATH, content=endless(), headers=server.bearer)
    assert answer.status_code == 413
    assert sent < 1 << 28, "the server hung up long before the end"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", "[::2]"])
def test_a_foreign_name_is_refused(server: Serving, host: str):
    answer = server.http.get("/local/analytics", headers={"Host": host})
    assert answer.status_code in (400, 421)


@pytest.mark.parametrize("host", ["localhost:9999", "127.0.0.1", "[::1]:8790"])
def test_this_machines_own_names_are_good(server: Serving, host: str):
    assert server.http.get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("place", ["of the user", "of the data"])
def test_spooled_messages_are_taken_in_and_bad_ones_set_aside(server: Serving, place: str):
    spool = (server.shared if place == "of the user" else server.data) / "spool"
    spool.mkdir(exist_ok=True)
    cluster = ("5" if place == "of the user" else "6") * 32
    body, encoding = compress(wire.encode(message(cluster=cluster)))
    (spool / "broken.gz.msg").write_bytes(b"no gzip")
    suffix = {"zstd": "zst", "gzip": "gz"}[encoding]
    (spool / "draft").write_bytes(body)
    (spool / "draft").rename(spool / f"good.{suffix}.msg")
    until(lambda: not list(spool.glob("*.msg")))
    assert [path.name for path in spool.iterdir()] == ["broken.gz.bad"]
    assert server.api(f"local/clusters/{cluster}")["name"] == "demo"
    assert server.log.count(f"{spool}/broken.gz.msg is not usable") == 1


def test_a_process_that_dies_is_replaced(server: Serving):
    server.http.get("/local/analytics")
    for pid in children(server.process.pid):
        if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    assert [server.http.get("/local/analytics").status_code for _ in range(3)] == [200] * 3, "nobody notices"


def test_a_second_server_on_the_port_says_so(server: Serving, tmp_path: Path):
    port = str(httpx.URL(server.url).port)
    second = Serving(tmp_path, "--port", port).start(stderr=subprocess.PIPE)
    _, said = second.communicate(timeout=30)
    assert second.returncode != 0
    assert "something listens there already" in said.decode()
    assert len(said.decode().strip().splitlines()) == 1


def test_a_second_server_on_the_data_says_who_has_it(server: Serving, tmp_path: Path):
    second = Serving(tmp_path, data=server.data).start(stderr=subprocess.PIPE)
    _, said = second.communicate(timeout=30)
    assert second.returncode == 2
    assert f"process {server.process.pid} at {server.url} has this one" in said.decode()
    assert len(said.decode().strip().splitlines()) == 1
    assert server.http.get("/healthz").text == "ok\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_clean_and_starts_again_with_its_history(tmp_path: Path, number: int):
    with Serving(tmp_path) as server:
        post(server, message()).raise_for_status()
        server.http.get("/local/analytics")
        family, token = children(server.process.pid), server.token
        assert family
        server.stop(number)
        assert server.process.returncode == 0
        assert not server.rendezvous().exists()
        until(lambda: not any(lives(pid) for pid in family))
        with daskscope.connect(server.data) as lake:
            assert [cluster["name"] for cluster in lake.list_clusters()] == ["demo"], "it left a catalog"
    with Serving(tmp_path) as again:
        assert again.token == token
        assert again.api("local/clusters/1")["name"] == "demo"


def test_a_token_that_an_earlier_release_left_is_made_anew_with_what_is_missing(tmp_path: Path):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    world = connect(LocalEnv(data=str(data)))
    old, _ = mint(world.tokens, world.clock, "local", ("ingest", "read", "admin"), "daskscope serve: token")
    ingest, _ = mint(world.tokens, world.clock, "local", ("ingest",), "daskscope serve: ingest-token")
    world.close()
    (data / "token").write_text(old)
    (data / "ingest-token").write_text(ingest)
    with Serving(tmp_path) as server:
        assert server.api("whoami")["scopes"] == ["admin", "control", "ingest", "read", "report"]
        assert server.token != old
        assert server.ingest_token == ingest
        assert mode(data / "token") == 0o600
        still = server.http.get("/api/v1/whoami", headers={"Authorization": f"Bearer {old}"})
        assert still.status_code == 200, "who holds the old one is not logged out"


def test_children_end_with_a_server_that_was_killed(tmp_path: Path):
    with Serving(tmp_path) as server:
        server.http.get("/local/analytics")
        family = children(server.process.pid)
        assert family
        server.stop(signal.SIGKILL)
        until(lambda: not any(lives(pid) for pid in family))


def printed(server: Serving) -> dict[str, str]:
    """What it says when it has started, all but the first line; by what each line begins with."""
    assert server.process.stdout
    lines = list[str]()
    while "Ctrl-C" not in (line := server.process.stdout.readline().decode()):
        lines.append(line.strip())
    return {line[:15].strip(): line[15:].strip() for line in lines}


def sign_in(server: Serving, link: str, host: str) -> httpx.Response:
    code = httpx.URL(link).params["code"]
    return server.http.post("/login", data={"code": code}, headers={"Host": host})


def test_off_loopback_pages_ask_for_a_login(tmp_path: Path):
    with Serving(tmp_path, "--host", "0.0.0.0") as server:
        told, met = printed(server), server.met()
        assert "Tokens and page" in told
        name, port = known_as("0.0.0.0"), httpx.URL(server.url).port
        assert name != "127.0.0.1", "others could not reach that"
        assert (met["url"], met["address"]) == (f"http://127.0.0.1:{port}", f"http://{name}:{port}")
        assert told["on this machine"] == met["url"]
        assert told["sign in at"].startswith(met["address"] + "/login?code=")
        assert told["reports are at"].startswith(f"http://{name}:")
        pages = "/local/analytics"
        assert server.http.get(pages, headers={"Host": "dask.example"}).status_code == 401
        link = httpx.URL(told["sign in at"]).raw_path.decode()
        assert [server.http.get(link).status_code for _ in range(2)] == [200, 200], "to look is to take not"
        assert sign_in(server, told["sign in at"], "dask.example").status_code == 303
        assert server.http.get(pages, headers={"Host": "dask.example"}).status_code == 200
        server.http.cookies.clear()
        assert sign_in(server, told["sign in at"], "dask.example").status_code == 404, "it is good once"


def test_whoever_starts_a_server_looks_after_its_account_and_what_it_reports_is_nobodys(tmp_path: Path):
    with Serving(tmp_path) as server:
        told = server.api("whoami")
        assert (told["user"], told["role"]) == (os_user(), "admin")
        assert told["accounts"] == [{"account": "local", "role": "admin"}]
        with server.registry() as world:
            ingest = Gate(world.tokens, world.users, world.clock).principal(f"Bearer {server.ingest_token}")
            assert (ingest.user, ingest.scopes) == (None, {"ingest"})
            world.users.remove("local", os_user(), last_too=True)
        server.stop()
    with Serving(tmp_path) as again:
        assert again.token == server.token
        assert again.api("whoami")["role"] == "admin", "who has the folder has all of it"


def test_behind_a_proxy_it_says_how_people_reach_it_and_asks_all_of_them_to_sign_in(tmp_path: Path):
    urls = ("--url", "https://dask.example/", "--reports-url", "https://reports.example")
    process = Serving(tmp_path, *urls).start(stderr=subprocess.PIPE)
    assert process.stdout
    url, here, link, reports = (process.stdout.readline().decode().split()[-1] for _ in range(4))
    assert url == "https://dask.example"
    assert link.startswith("https://dask.example/login?code=")
    assert reports == "https://reports.example"
    (meeting,) = (tmp_path / "xdg" / "daskscope" / "servers").glob("*.json")
    met = json.loads(meeting.read_text())
    assert (met["url"], met["address"]) == (here, "https://dask.example"), "links of the CLI lead people there"
    said = CliRunner().invoke(admin, ["user", "link", os_user(), "--data", str(tmp_path / "data")])
    assert said.stdout.startswith("https://dask.example/login?code="), "and so do an operator's"
    with httpx.Client(base_url=here, trust_env=False, timeout=30) as http:
        for host, status in (("dask.example", 401), ("reports.example", 401), ("other.example", 421)):
            assert http.get("/local/analytics", headers={"Host": host}).status_code == status
        code = httpx.URL(link).params["code"]
        signed_in = http.post("/login", data={"code": code}, headers={"Host": "dask.example"})
        assert "__Host-daskscope=" in signed_in.headers["set-cookie"]
    process.terminate()
    process.communicate(timeout=30)


@pytest.mark.parametrize(
    "url", ["dask.example", "ftp://dask.example", "https://dask.example/x", "https://", "https://a@b"]
)
def test_an_address_that_is_none_is_refused(tmp_path: Path, url: str):
    process = Serving(tmp_path, "--url", url).start(stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "--url" in said.decode()
    assert len(said.decode().strip().splitlines()) == 1


def test_the_port_of_reports_is_refused_where_something_listens(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = Serving(tmp_path, "--reports-port", str(taken.getsockname()[1])).start(stderr=subprocess.PIPE)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "--reports-port" in said.decode()


def test_a_proxys_name_is_allowed_by_option_and_nobody_reads_without_a_login_then(tmp_path: Path):
    with Serving(tmp_path, "--allow-host", "hub.example") as server:
        for host in ("hub.example", "127.0.0.1"):
            assert server.http.get("/healthz", headers={"Host": host}).status_code == 200
            for path in ("/local/analytics", "/api/v1/local/clusters"):
                assert server.http.get(path, headers={"Host": host}).status_code == 401
        said = server.http.get("/healthz", headers={"Host": "other.example"})
        assert (said.status_code, "ask for a login" in said.text) == (421, True)


@pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2"])
def test_another_loopback_address_is_a_name_of_its_own(tmp_path: Path):
    with Serving(tmp_path, "--host", "127.0.0.2") as server:
        assert server.url.startswith("http://127.0.0.2:")
        assert server.http.get("/local/analytics").status_code == 200
        assert server.http.get("/healthz", headers={"Host": "127.0.0.3"}).status_code == 421
