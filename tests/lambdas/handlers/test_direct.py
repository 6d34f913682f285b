"""A lake without a server answers what the server answers that wrote it."""

import base64
import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from textwrap import dedent
from typing import Any

import boto3
import pytest

from daskscope import wire
from daskscope.errors import (
    BadRequest,
    NotFound,
    PermissionDenied,
    ServerError,
    ServerUnreachable,
    SettingsError,
)
from daskscope.testing import boot_at, exception, groups, identity, logs, member, message, profile, span, tasks
from daskscope.testing import event as happened
from daskscope_lambdas.direct import Direct, open_lake
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import compact, house
from daskscope_lambdas.opening import explained, settings_of
from daskscope_lambdas.ports import StoreError
from daskscope_lambdas.service.audit import Audit, Operator
from daskscope_lambdas.service.batch import write_batch
from daskscope_lambdas.service.compact import LINGER_S
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.letters import Letters
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters, connect
from tests.aws_world import make_world, point_at
from tests.emulator import Emulator

Get = Callable[..., dict[str, Any]]
Token = Callable[..., str]
CODE = wire.Code(hash="ba7816bf8f01cfea414140de5dae2223", text="abc")
START_MS = 1_795_248_000_000
DAY_S = 86_400.0
BEGUN = "f" * 31 + "7"
"""A cluster of the day that is over."""

ROUTES = (
    "clusters", "clusters?limit=1&sort=id", "clusters?user=ada&since=86400", "clusters/1", "clusters/2", "clusters/99",
    *(f"clusters/{no}/{name}" for no in (1, 2) for name in
      ("computations", "groups", "exceptions", "events", "workers", "members", "deaths", "logs", "spans", "metrics",
       "tasks", "profile", "samples")),
    "exceptions", "exceptions?since=3600", "exceptions?limit=1", "computations", "code", "prefixes", "deaths",
    "events", "logs", "metrics", "profile", "costs", "costs?by=day", "prices", "compare?ids=1,2", "clusters?limit=none",
    "exceptions?cluster=77",
)  # fmt: skip
"""Under an account."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a server: of one day that is sealed and one that is open, and with a catalog."""
    env, clock = LocalEnv(data=str(tmp_path_factory.mktemp("made") / "data")), FakeClock()
    with ExitStack() as closed:
        world = connect(env, clock)
        closed.callback(world.close)
        clock.advance(-DAY_S)
        started = identity(name="yesterday", started_at_ms=START_MS - 86_400_000)
        take(
            world,
            told(cluster=BEGUN, boot=boot_at(START_MS - 86_400_000), phase="closed", identity=started),
        )
        clock.advance(DAY_S)
        take(world, told())
        with house.entered(house.House(lambda: env, lambda: world)):
            for _ in range(2):  # the second one sees what the first one sealed
                compact.handler({}, None)
    assert list(Path(env.lake, "seals").rglob("sealed-at.json"))
    return Path(env.data)


@pytest.fixture
def env(made: Path, tmp_path: Path) -> LocalEnv:
    """As all fixtures of the server's have it."""
    return LocalEnv(data=str(shutil.copytree(made, tmp_path / "data")))


@pytest.fixture
def data(env: LocalEnv) -> Path:
    return Path(env.data)


def take(world: LocalAdapters, posted: wire.Message, account: str = "acme") -> None:
    """As `ingest` and `write` do."""
    Ingest.over(world).take(account, wire.encode(posted), "", None)
    batch = world.feed.receive(10, 60.0)
    writer, letters = Writer(world.objects, world.seals), Letters(world.objects, world.clock)
    assert write_batch(writer, letters, [(each.id, each.body) for each in batch]) == []
    world.feed.delete([each.receipt for each in batch])


def told(**changes: Any) -> wire.Message:
    given: dict[str, Any] = {
        "totals": wire.Totals(n_workers=2, n_tasks=4, n_tasks_erred=3, thread_us=10**7, action_us={"compute": 4_000}),
        "computations": [
            wire.Computation(no=0, start_ms=START_MS, code=[[wire.Frame(code=CODE.hash, file="job.py", line=3)]])
        ],
        "codes": [CODE], "groups": groups({"no": 0, "span": span().id}), "exceptions": [exception()],
        "events": [happened(no=no) for no in range(3)], "logs": logs({"no": 0}), "spans": [span()],
        "tasks": tasks(5), "profiles": [profile(cut=6)],
        "members": [member(no=0, role="scheduler", joined_ms=START_MS), member(no=1)],
    }  # fmt: skip
    return message(**{**given, **changes})


@pytest.fixture
def opened(data: Path, clock: FakeClock) -> Iterator[Direct]:
    with closing(Direct(settings_of(str(data), None, None), clock)) as found:
        yield found


def asked(lake: Direct, target: str, method: str = "GET") -> tuple[int, dict[str, Any]]:
    path, _, query = target.partition("?")
    status, headers, body = lake.request(method, f"/api/v1/{path}", dict(p.split("=") for p in query.split("&") if p))
    assert headers["Daskscope-Api"] == "1"
    assert headers["Content-Type"] == "application/json"
    return status, json.loads(body)


def test_it_answers_what_the_server_answers(opened: Direct, data: Path, get: Get, token: Token) -> None:
    reader, before = token("read"), snapshot(data / "lake")
    odd = dict[str, int]()
    for route in ROUTES:
        served = get(f"/api/v1/acme/{route}", reader)
        answer = asked(opened, f"acme/{route}")
        assert answer == (served["statusCode"], json.loads(served["body"])), route
        odd |= {route: answer[0]} if answer[0] != 200 else {}
    assert odd == {"clusters/99": 404, "clusters?limit=none": 400, "exceptions?cluster=77": 404}
    assert snapshot(data / "lake") == before, "nothing is written"


def test_a_report_of_a_run_is_the_servers_own(opened: Direct, get: Get, token: Token) -> None:
    path = "/api/v1/acme/clusters/1/report"
    status, headers, body = opened.request("GET", path, {"tasks": "true"})
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert body.decode() == get(f"{path}?tasks=true", token("read"))["body"]


def snapshot(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_pages_go_on_where_they_ended(opened: Direct) -> None:
    seen, cursor = list[str](), ""
    while cursor is not None:
        _, page = asked(opened, f"acme/events?limit=2{cursor and '&cursor='}{cursor}")
        seen += [item["action"] for item in page["items"]]
        cursor = page["cursor"]
    assert len(seen) == 6


def test_sealed_days_are_read_from_their_own_files(
    data: Path, world: LocalAdapters, clock: FakeClock, get: Get, token: Token, tmp_path: Path
) -> None:
    clock.advance(LINGER_S + 1)
    compact.handler({}, None)
    days = {path.name for path in Path(data, "lake", "open", "events").iterdir() if any(path.iterdir())}
    assert days == {"day=2026-11-21"}
    # And where nobody has written down yet that the day is sealed, its open files are all there still.
    copied = tmp_path / "copied"
    shutil.copytree(data / "lake", copied)
    events = json.loads(get("/api/v1/acme/events", token("read"))["body"])
    assert len(events["items"]) == 6
    with closing(Direct(settings_of(str(copied), None, None), clock)) as lake:
        assert asked(lake, "acme/events") == (200, events)


def test_a_day_of_which_nobody_knows_yet_that_it_is_sealed(
    data: Path, clock: FakeClock, get: Get, token: Token, tmp_path: Path
) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(data / "lake", copied)
    (marked,) = copied.glob("seals/*/sealed-at.json")
    marked.unlink()
    with closing(Direct(settings_of(str(copied), None, None), clock)) as lake:
        for route in ("acme/events", "acme/clusters/1/groups", "acme/prefixes"):
            served = json.loads(get(f"/api/v1/{route}", token("read"))["body"])
            assert served["items"]
            assert asked(lake, route) == (200, served)


def test_time_stands_where_the_catalog_was_made_as_long_as_it_is_fresh(data: Path, clock: FakeClock) -> None:
    def states() -> list[str]:
        with closing(Direct(settings_of(str(data), None, None), clock)) as lake:
            return [item["status"] for item in asked(lake, "acme/clusters")[1]["items"]]

    assert states() == ["running", "stopped"]
    clock.advance(1800)
    assert states() == ["running", "stopped"], "who reported then may do so still"
    clock.advance(1)
    assert states() == ["lost", "stopped"], "nobody has made a catalog for long: nobody hears anybody"


def test_nothing_can_be_changed(opened: Direct) -> None:
    for method, target in (
        ("POST", "acme/clusters/2/close"), ("POST", "acme/tokens"), ("DELETE", "acme/tokens/x"), ("PUT", "acme"),
    ):  # fmt: skip
        status, body = asked(opened, target, method)
        assert (status, body["error"]["code"]) == (403, "read-only")
        assert "ask the server" in body["error"]["message"]


@pytest.mark.parametrize(
    ("route", "what"),
    [
        ("tokens", "tokens"),
        ("users", "users"),
        ("policy", "policy"),
        ("reports", "reports"),
        ("reports/1", "reports"),
        ("invitations", "invitations"),
    ],
)
def test_what_only_the_server_knows_is_not_answered(opened: Direct, route: str, what: str) -> None:
    status, body = asked(opened, f"acme/{route}")
    said = f"A lake without its server has no {what}: ask the server that writes it."
    assert (status, body["error"]) == (403, {"code": "read-only", "message": said})


def test_what_was_done_to_the_account_is_told(opened: Direct, world: LocalAdapters, get: Get, token: Token) -> None:
    Audit(world.objects, world.seals, world.clock).record(Operator("acme", "root"), "user.role", "ann", {"role": "x"})
    served = json.loads(get("/api/v1/acme/audit", token("admin"))["body"])
    assert [act["target"] for act in served["items"]] == ["ann"]
    assert asked(opened, "acme/audit") == (200, served)


def text_of(lake: Direct) -> str | None:
    (computation,) = asked(lake, "acme/clusters/2/computations")[1]["items"]
    return computation["code"][0]["text"]


def test_code_is_shown_with_its_key_and_left_out_without(
    data: Path, opened: Direct, clock: FakeClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert text_of(opened) == "abc"
    alone = tmp_path / "elsewhere"
    shutil.copytree(data / "lake", alone)
    for keys, text in ((None, None), (str(data / "keys"), "abc")):
        with closing(Direct(settings_of(str(alone), "acme", keys), clock)) as lake:
            assert text_of(lake) == text
    assert not caplog.records
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    (wrong / "acme.key").write_bytes(b"x" * 32)
    with closing(Direct(settings_of(str(alone), None, str(wrong)), clock)) as lake:
        assert [text_of(lake), text_of(lake)] == [None, None]
    (said,) = caplog.records
    assert (said.levelno, "does not open this" in said.getMessage()) == (logging.WARNING, True)


def test_two_lakes_and_the_server_keep_apart(
    data: Path, opened: Direct, clock: FakeClock, tmp_path: Path, world: LocalAdapters, get: Get, token: Token
) -> None:
    shutil.copytree(data / "lake", tmp_path / "before")
    take(world, told(cluster="5" * 32), "globex")
    compact.handler({}, None)
    with closing(Direct(settings_of(str(data), "globex", None), clock)) as other:

        def many(lake: Direct, account: str) -> list[tuple[int, int]]:
            return [
                (len(asked(lake, f"{account}/clusters")[1]["items"]), asked(lake, f"{account}/clusters/1")[0])
                for _ in range(5)
            ]

        with ThreadPoolExecutor(2) as pool:
            mine, theirs = pool.submit(many, opened, "acme"), pool.submit(many, other, "globex")
            assert (mine.result(), theirs.result()) == ([(2, 200)] * 5, [(1, 200)] * 5)
        assert asked(other, "acme/clusters")[0] == asked(opened, "globex/clusters")[0] == 404
    assert get("/api/v1/globex/clusters", token("read", account="globex"))["statusCode"] == 200
    for root, account, error, says in (
        (data, None, SettingsError, "acme, globex"),
        (data, "nobody", NotFound, "no account nobody in .*; there are acme, globex"),
        (tmp_path / "before", "globex", NotFound, "there are acme"),
    ):
        with pytest.raises(error, match=says):
            open_lake(str(root), account=account)


def test_what_is_no_lake_says_what_to_do(data: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "young" / "lake" / "open").mkdir(parents=True)
    for root, keys, error, says in (
        (tmp_path / "nowhere", None, NotFound, "no such folder"),
        (tmp_path / "empty", None, NotFound, "nothing of a lake in .*: is this where its lake is"),
        (tmp_path / "young", None, NotFound, "no catalog of clusters, which names the account, in .*within a minute"),
        ("sth://bucket", None, SettingsError, "s3://BUCKET/PREFIX"),
        (data, str(tmp_path), SettingsError, "keys is .* a folder that holds acme.key, or ssm:/PATH"),
    ):
        with pytest.raises(error, match=says):
            open_lake(str(root), keys=keys)


def test_a_lake_that_cannot_be_read_says_why(data: Path, opened: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr("daskscope_query.listing.Listing.keys", fail)
        status, body = asked(opened, "acme/events")
        assert (status, body["error"]["message"]) == (500, "The lake could not be read: the disk is gone")
        with pytest.raises(ServerError, match="the disk is gone"):
            opened.sql("FROM events")
    for catalog in data.glob("lake/catalog/*/*"):
        catalog.write_bytes(b"PAR1 not really")
    with closing(open_lake(str(data))) as lake:
        status, body = asked(lake, "acme/clusters")
        assert (status, body["error"]["message"].startswith("The lake could not be read")) == (500, True)
        assert "no catalog of clusters that can be read, which lists come from" in body["error"]["message"]


def test_tables_need_no_catalog_where_the_account_is_clear(data: Path, tmp_path: Path, clock: FakeClock) -> None:
    shutil.rmtree(data / "lake" / "catalog")
    # Sealed files name it; open ones hold rows of all accounts.
    for account, sealed in ((None, True), ("acme", False)):
        if not sealed:
            shutil.rmtree(data / "lake" / "sealed")
        with closing(Direct(settings_of(str(data), account, None), clock)) as lake:
            assert lake.sql("SELECT DISTINCT account FROM events").to_pylist() == [{"account": "acme"}]
            with pytest.raises(ServerError, match="no catalog of clusters that can be read, which lists come from"):
                lake.sql("FROM catalog")
    with pytest.raises(NotFound, match="no catalog of clusters, which names the account"):
        open_lake(str(data))


def test_time_is_counted_back_from_when_somebody_asks(opened: Direct, clock: FakeClock) -> None:
    def found(since: int) -> list[str]:
        return [item["status"] for item in asked(opened, f"acme/clusters?since={since}")[1]["items"]]

    assert found(600) == ["running"]
    assert asked(opened, "acme/costs?since=600")[1]["items"]
    clock.advance(1200)
    assert (found(600), found(1800)) == ([], ["running"])


def test_a_lake_in_a_bucket(
    data: Path, opened: Direct, clock: FakeClock, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    point_at(emulator, monkeypatch)
    bucket = make_world(emulator).bucket
    root = f"s3://{bucket}/team/lake"
    with closing(boto3.client("s3", endpoint_url=emulator.url)) as s3:
        for path in data.glob("lake/**/*"):
            if path.is_file():
                key = f"team/lake/{path.relative_to(data / 'lake').as_posix()}"
                s3.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
    with closing(boto3.client("ssm", endpoint_url=emulator.url)) as ssm:
        key = base64.b64encode((data / "keys" / "acme.key").read_bytes()).decode()
        ssm.put_parameter(Name=f"/{bucket}/acme", Value=key, Type="SecureString")
    for where, keys in ((root, f"ssm:/{bucket}"), (f"s3://{bucket}/team/", str(data / "keys"))):
        with closing(Direct(settings_of(where, None, keys), clock)) as lake:
            for route in ("acme/clusters", "acme/clusters/1", "acme/clusters/2/computations", "acme/prefixes"):
                assert asked(lake, route) == asked(opened, route)
            assert text_of(lake) == "abc"
            query = "SELECT action FROM events JOIN catalog USING (cluster)"
            assert lake.sql(query) == opened.sql(query)
    for where, says in ((f"s3://{bucket}/other", "no such folder"), ("s3://no-such-bucket-here", "no such folder")):
        with pytest.raises(NotFound, match=says):
            open_lake(where)


@pytest.mark.long
def test_a_bucket_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, emulator: Emulator) -> None:
    """AWS's library tries for some seconds."""
    point_at(emulator, monkeypatch)
    with pytest.raises(ServerUnreachable, match=r"The lake could not be read: s3://b/p: .*NETWORK_CONNECTION"):
        open_lake("s3://b/p?endpoint_override=127.0.0.1:1&scheme=http")


@pytest.mark.parametrize(
    ("told", "error", "says"),
    [
        (
            "s3://b/p: AWS Error NETWORK_CONNECTION during ListObjectsV2",
            ServerUnreachable,
            "could not be read: s3://b/p",
        ),
        ("s3://b/p: AWS Error ACCESS_DENIED during ListObjectsV2", PermissionDenied, "needs s3:ListBucket"),
        ("/lake: Permission denied (PermissionError)", PermissionDenied, "/lake: Permission denied"),
    ],
)
def test_why_a_store_does_not_answer(told: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        raise explained(StoreError(told))


def test_sql_is_answered_over_tables_rollups_and_the_catalog(
    opened: Direct, caplog: pytest.LogCaptureFixture, data: Path
) -> None:
    def rows(query: str, *params: Any, **given: Any) -> list[dict[str, Any]]:
        return opened.sql(query, None, params, **given).to_pylist()

    assert rows("SELECT count(*) AS n FROM events") == [{"n": 6}]
    assert rows("SELECT count(*) AS n FROM events", since="2026-11-21") == [{"n": 3}]
    assert rows("SELECT count(*) AS n FROM events", until=3600 * 12.0) == [{"n": 3}]
    assert rows("SELECT name, cluster_id FROM catalog WHERE name = ?", "yesterday") == [
        {"name": "yesterday", "cluster_id": 1}
    ]
    both = "SELECT DISTINCT day FROM clusters_daily JOIN prefixes_daily USING (day) ORDER BY day"
    assert [f"{row['day']}" for row in rows(both)] == ["2026-11-20", "2026-11-21"]
    assert not caplog.records
    (flawed,) = data.glob("lake/open/events/day=2026-11-21/*.parquet")
    flawed.write_bytes(b"PAR1 not really")
    assert rows("SELECT count(*) AS n FROM events") == [{"n": 3}]
    assert "1 files could not be read (open/events/day=2026-11-21/" in caplog.text


def test_sql_that_cannot_be_answered(opened: Direct) -> None:
    cases: tuple[tuple[str, dict[str, Any], type[Exception], str], ...] = (
        ("SELEC 1", {}, BadRequest, r"syntax error at or near \"SELEC\"[\s\S]*LINE 1: SELEC 1\n"),
        ("FROM event", {}, BadRequest, "event does not exist[\\s\\S]*Tables are audit, catalog, clusters,"),
        ("FROM events", {"since": "soon"}, BadRequest, "since is 'soon'; allowed"),
        ("FROM events", {"since": 0, "until": 9e5}, BadRequest, "is after until"),
        ("FROM events", {"account": "globex"}, NotFound, "opened for account acme"),
    )
    for query, given, error, says in cases:
        with pytest.raises(error, match=says):
            opened.sql(query, **given)


def test_the_example_of_the_page_runs(data: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "read-without-a-server.md").read_text()
    (example,) = [block for block in re.findall(r"(?m)(?:^ {4}.*\n)+", page) if "import daskscope" in block]
    *_, last = lines = dedent(example.replace("s3://our-lake", str(data))).splitlines()
    names: dict[str, Any] = {}
    exec("\n".join([*lines[:-1], f"    found = {last.strip()}"]), names)
    (row,) = names["found"].to_arrow().to_pylist()
    assert row["user"] == "ada"
    assert row["dollars"] > 0
