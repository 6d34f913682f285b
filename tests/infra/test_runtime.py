"""Each function from its zip, unpacked alone, under the real runtime client, in a world of the emulator's.

What the functions hand on to each other is handed on here by the queue itself.
"""

import hashlib
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import boto3
import pytest

from daskscope import wire
from daskscope.compression import compress
from daskscope.testing import boot_at, exception, groups, identity, message
from daskscope_infra.bundles import Family, Target, build
from daskscope_lambdas.embedded.schedule import scheduler_event, sqs_event
from daskscope_lambdas.env import AwsEnv
from daskscope_lambdas.ports import Delivery
from daskscope_lambdas.service.envelope import pack, unpack
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import Adapters, connect
from daskscope_query import layout
from tests.aws_world import make_world, point_at
from tests.emulator import Emulator
from tests.infra.runtime_api import Function, FunctionError, add_runtime
from tests.lambdas.handlers.conftest import event

TARGET = Target("x86_64", f"{sys.version_info.major}.{sys.version_info.minor}")
FAMILIES: dict[str, Family] = {
    "ingest": "light",
    "sweep": "light",
    "write": "heavy",
    "api": "heavy",
    "compact": "heavy",
}
DAY_S = 86_400
TEXT = "frame.sum().compute()"
CODE = wire.Code(hash=hashlib.sha256(TEXT.encode()).hexdigest()[:32], text=TEXT)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Family, Path]]:
    """Zipped and unpacked, as between a deploy and a function."""
    folders: dict[Family, Path] = {}
    for family in sorted(set(FAMILIES.values())):
        bundle, at = build(family, TARGET), tmp_path_factory.mktemp(family)
        with zipfile.ZipFile(at / "zip", "w") as archive:
            for path in sorted(bundle.rglob("*")):
                archive.write(path, path.relative_to(bundle))
        folders[family] = at / "task"
        shutil.unpack_archive(at / "zip", folders[family], "zip")
        (at / "zip").unlink()
    yield folders
    for folder in folders.values():
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_runtime(tmp_path_factory.mktemp("runtime"))


@pytest.fixture
def env(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> AwsEnv:
    point_at(emulator, monkeypatch)
    return make_world(emulator)


@pytest.fixture
def world(env: AwsEnv) -> Iterator[Adapters]:
    """The functions' own world, seen from here."""
    world = connect(env)
    yield world
    world.close()


@pytest.fixture
def start(
    unpacked: dict[Family, Path], runtime: Path, emulator: Emulator, env: AwsEnv, tmp_path: Path
) -> Iterator[Callable[..., Function]]:
    """Start a function by its name; `bundle` is another one than its own, `variables` differ from the world's."""
    with ExitStack() as running:

        def begin(name: str, bundle: Path | None = None, **variables: str) -> Function:
            handler = f"daskscope_lambdas.handlers.{name}.handler"
            told = emulator.environment | env.variables() | variables
            folder = bundle or unpacked[FAMILIES[name]]
            return running.enter_context(Function(folder, runtime, handler, told, tmp_path / f"{name}.log"))

        yield begin


@pytest.fixture
def queued(env: AwsEnv) -> Callable[[], list[Delivery]]:
    """Take what stands in the queue, as an event source mapping does."""

    def take() -> list[Delivery]:
        sqs = boto3.client("sqs")
        found = sqs.receive_message(QueueUrl=env.queue_url, MaxNumberOfMessages=10).get("Messages", [])
        sqs.close()
        return [Delivery(m["MessageId"], m["ReceiptHandle"], m["Body"], 1) for m in cast("Any", found)]

    return take


def post(posted: wire.Message, token: str) -> dict[str, Any]:
    body, encoding = compress(wire.encode(posted))
    headers = {"authorization": f"Bearer {token}", "content-encoding": encoding, "content-type": wire.CONTENT_TYPE}
    return event("POST", wire.PATH, headers, body)


def told(started_at: float) -> wire.Message:
    """The first message of a cluster, with something for each table."""
    ms = int(started_at * 1000)
    return message(
        boot=boot_at(ms),
        made_at_ms=ms,
        identity=identity(started_at_ms=ms),
        computations=[wire.Computation(no=0, start_ms=ms, code=[[wire.Frame(code=CODE.hash, file="job.py", line=3)]])],
        codes=[CODE],
        groups=groups({"no": 0, "start_ms": ms, "stop_ms": ms + 5_000}),
        exceptions=[exception(first_ms=ms, last_ms=ms)],
    )


def test_a_message_goes_through_all_functions(
    world: Adapters, start: Callable[..., Function], queued: Callable[[], list[Delivery]], unpacked: dict[Family, Path]
) -> None:
    before = {family: set(folder.rglob("*")) for family, folder in unpacked.items()}
    token, _ = mint(world.tokens, world.clock, "acme", {"ingest", "read"}, "test")
    bearer = {"authorization": f"Bearer {token}"}

    ingest = start("ingest")
    answer = ingest.invoke(post(told(world.clock.now()), token))
    assert answer["statusCode"] == 200, answer
    assert json.loads(answer["body"])["id"] == 1
    assert ingest.invoke(post(told(world.clock.now()), "dks_of-nobody"))["statusCode"] == 401

    batch = queued()
    assert len(batch) == 1
    write = start("write")
    assert write.invoke(sqs_event(batch)) == {"batchItemFailures": []}
    files = list(world.objects.list("open/"))
    assert {key.split("/")[1] for key in files} >= {"clusters", "samples", "workers", "groups", "exceptions"}
    assert all(world.objects.get(key)[:4] == b"PAR1" for key in files)

    # The same as if it had come two days ago: a day that is over.
    early = unpack(batch[0].body)
    early = replace(early, cluster_id=2, received_at=early.received_at - 2 * DAY_S)
    poisoned = [Delivery("early", "r", pack(early), 1), Delivery("poison", "r", "no envelope", 1)]
    assert write.invoke(sqs_event(poisoned)) == {"batchItemFailures": []}
    assert len(list(world.objects.list("dead/unread/"))) == 1
    assert start("compact").invoke(scheduler_event()) is None
    day = layout.day_of(early.received_at)
    boundary = world.seals.boundary()
    assert boundary
    assert boundary >= day
    assert list(world.objects.list(layout.sealed_prefix("groups", "acme", day)))

    api = start("api")
    answer = api.invoke(event("GET", "/api/v1/acme/clusters/1/computations", bearer))
    assert answer["statusCode"] == 200, answer
    assert TEXT in answer["body"]
    page = api.invoke(event("GET", "/acme/analytics/clusters/1", cookies=(f"__Host-daskscope={token}",)))
    assert page["statusCode"] == 200, page
    assert "ValueError" in page["body"]
    assert api.invoke(event("GET", "/nowhere", bearer))["statusCode"] == 404

    swept = start("sweep").invoke(scheduler_event())
    assert swept["living"] == 1

    # Byte code was there for all that was imported: none was added.
    assert {family: set(folder.rglob("*")) for family, folder in unpacked.items()} == before


@pytest.mark.parametrize(
    ("function", "package"),
    [
        ("ingest", "msgspec"),
        ("sweep", "aws_lambda_powertools"),
        ("write", "pyarrow"),
        ("api", "duckdb"),
        ("compact", "daskscope_query"),
    ],
)
def test_a_bundle_that_lacks_a_package_is_found_out(
    function: str, package: str, unpacked: dict[Family, Path], start: Callable[..., Function], tmp_path: Path
) -> None:
    lacking = shutil.copytree(unpacked[FAMILIES[function]], tmp_path / "lacking", copy_function=os.link)
    shutil.rmtree(lacking / package)
    with pytest.raises(FunctionError, match=package) as caught:
        start(function, lacking).invoke(scheduler_event())
    assert caught.value.kind == "Runtime.ImportModuleError"


def test_a_fault_stands_once_in_the_log_with_its_cause(
    world: Adapters, start: Callable[..., Function], tmp_path: Path
) -> None:
    token, _ = mint(world.tokens, world.clock, "acme", {"ingest"}, "test")
    ingest = start("ingest", DASKSCOPE_TABLE="no-such-table")
    answer = ingest.invoke(post(told(world.clock.now()), token))
    assert (answer["statusCode"], json.loads(answer["body"])["error"]["code"]) == (500, "server-error")
    records = [json.loads(line) for line in (tmp_path / "ingest.log").read_text().splitlines()]
    (fault,) = [record for record in records if record["level"] == "ERROR"]
    assert "request-1" in fault["message"]
    assert "ResourceNotFoundException" in fault["exception"]
