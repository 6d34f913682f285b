"""The token stands in the Authorization header of what goes to the configured server, and nowhere else."""

from __future__ import annotations

import gzip
import json
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.config
import pytest

import daskscope
from daskscope.collect.parcels import Parcels
from daskscope.errors import SettingsError
from daskscope.options import OPTIONS
from daskscope.settings import TOKENS
from daskscope.transport import Http
from daskscope.watch import EXTENSION
from tests.plugin.canaries.capture import TAKEN, Answer, Asked, Capture
from tests.plugin.canaries.planted import NEVER, Canaries
from tests.plugin.canaries.stage import talkative
from tests.plugin.rig import Cluster, inc, running, settings, spooled, until

pytestmark = pytest.mark.asyncio

PLANTED = Canaries({"token": NEVER})
TOKEN = f"dst_{PLANTED['token']}"


def holds(*shown: object) -> bool:
    """Whether the token is in any of these texts or bytes, also in other forms."""
    raw = [each if isinstance(each, bytes) else str(each).encode("utf-8", "replace") for each in shown]
    return bool(PLANTED.found(b"\n".join(raw)))


class Written(logging.Handler):
    """All that is logged in this process, as it would be written, with tracebacks."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record) + repr(vars(record)))


@pytest.fixture
def written() -> Iterator[list[str]]:
    handler = Written()
    loggers = [logging.getLogger(name) for name in ("", "distributed", "distributed.client")]
    with talkative():
        for logger in loggers:
            logger.addHandler(handler)
        yield handler.texts
        for logger in loggers:
            logger.removeHandler(handler)


async def report(cluster: Cluster, **given: Any) -> Any:
    found: Any = daskscope.register(cluster.client, **given)
    registration = await found
    assert await cluster.client.submit(inc, 1) == 2
    cluster.scheduler.extensions[EXTENSION].poll()
    return registration


def echo(asked: Asked) -> Answer:
    """A proxy that shows what it refused."""
    return 400, json.dumps({"error": {"message": f"refused: {asked.headers}"}}).encode()


def taken(asked: Asked) -> Answer:
    return 200, TAKEN


def cut(asked: Asked) -> Answer:
    """The same, with the token where a message is cut."""
    return 400, json.dumps({"error": {"message": "x" * 480 + asked.headers["authorization"]}}).encode()


def escaped(asked: Asked) -> Answer:
    """The same, as JSON may write any letter."""
    said = "".join(f"\\u{ord(letter):04x}" for letter in asked.headers["authorization"])
    return 400, b'{"error": {"message": "%s"}}' % said.encode()


ANSWERS: dict[str, Callable[[Asked], Answer]] = {
    "taken": taken,
    "denied": lambda asked: (401, str(asked.headers).encode()),
    "failed": lambda asked: (500, str(asked.headers).encode()),
    "refused": echo,
    "refused at length": cut,
    "refused in escapes": escaped,
    "echoed": lambda asked: (200, json.dumps({"id": 1, "url": asked.headers["authorization"], "wish": []}).encode()),
}


@pytest.mark.parametrize("kind", ANSWERS)
async def test_it_is_in_no_log_no_dump_and_no_repr(
    kind: str, written: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Capture(ANSWERS[kind]).running() as capture:
        async with running() as cluster:
            registration = await report(cluster, server=capture.url, token=TOKEN)
            await until(lambda: capture.asked)
            scheduler, client = cluster.scheduler, cluster.client
            watch = scheduler.extensions[EXTENSION]
            await client.dump_cluster_state(str(tmp_path / "dump"))
            await client.dump_cluster_state(str(tmp_path / "dump"), format="yaml")
            dumps = [gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                 for path in tmp_path.glob("dump*")]  # fmt: skip
            events: Any = await client.get_events("all")
            shown = [registration, registration._repr_html_(), watch, watch.describe(), watch.sender, watch._settings]
            shown += [scheduler.extensions, scheduler.plugins, scheduler.handlers, scheduler._to_dict(), events]
            preview: Any = daskscope.preview(client)
            shown += [await preview, await client.get_scheduler_logs(), await client.get_worker_logs(), vars(scheduler)]
    assert len(dumps) == 2
    assert all(dumps)
    assert all(asked.headers["authorization"] == f"Bearer {TOKEN}" for asked in capture.asked), "it is needed there"
    for asked in capture.asked:
        asked.headers.pop("authorization")
    assert not holds(*[each.path for each in capture.asked], *[each.headers for each in capture.asked])
    assert not holds(*capture.bodies)
    assert not holds(*dumps)
    assert not holds(*shown)
    leaks = [text[:2000] for text in written if holds(text)]
    assert not leaks
    assert not holds(*capsys.readouterr())


async def test_it_goes_to_no_other_host() -> None:
    with Capture().running() as other, Capture().running() as capture:
        capture.answer = lambda _: (307, other.url.encode())
        capture.headers = {"Location": f"{other.url}/api/v1/telemetry"}
        async with running() as cluster:
            await report(cluster, server=capture.url, token=TOKEN)
    assert capture.asked
    assert (other.n_connections, other.asked) == (0, [])


async def test_it_is_in_no_spool(data: Path) -> None:
    async with running() as cluster:
        await report(cluster, token=TOKEN)
    assert spooled(data)
    for path in data.rglob("*"):
        assert not holds(path)
        assert not path.is_file() or not holds(path.read_bytes())
    assert not holds(*(repr(message) for message in spooled(data)))


async def test_workers_do_not_get_it() -> None:
    parcels = Parcels("Scheduler-1", settings(token=TOKEN, ingest_token=TOKEN, tags={"a": TOKEN}))
    for nanny in (True, False):
        for versions in ({}, {"host": {"python": "3.11.7.final.0"}}):
            assert not holds(parcels.of(versions, nanny=nanny))


@pytest.mark.parametrize("broken", [f"{TOKEN}\n", f"two {TOKEN}", f"{TOKEN}\u20ac", f"{TOKEN}\x00"])
async def test_one_that_cannot_be_used_is_not_shown(
    broken: str, cluster: Cluster, written: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for key in ("token", "ingest-token"):
        with dask.config.set({f"daskscope.{key}": broken}), pytest.raises(SettingsError) as caught:
            daskscope.register(cluster.client)
        assert not holds(*traceback.format_exception(caught.value)[:-1], caught.value, repr(caught.value))
        await daskscope.dask_setup(cluster.client)
    with Capture().running() as capture:
        transport = Http(capture.url, broken)
        outcome = transport.deliver("a", b"b", "gzip")
        transport.close()
    assert (outcome.verdict, capture.asked) == ("again", [])
    assert not holds(outcome, *written, *capsys.readouterr())


@pytest.mark.parametrize("server", ["http://ada:{}@127.0.0.1:1", "http://{}@127.0.0.1:1", "ada:{}@127.0.0.1"])
async def test_nor_is_a_password_in_a_server_s_address(server: str, cluster: Cluster) -> None:
    with pytest.raises(SettingsError, match=r"daskscope\.server is '\(not shown\)'") as caught:
        daskscope.register(cluster.client, server=server.format(TOKEN))
    assert not holds(caught.value, repr(caught.value))


async def test_settings_show_none() -> None:
    fields = [option.field for option in OPTIONS if "token" in option.key]
    assert fields == [*TOKENS]
    assert not holds(repr(settings(**dict.fromkeys(fields, TOKEN))))
