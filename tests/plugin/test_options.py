"""Each option does what it says: as the user sets it, by `register()`, and seen in what leaves."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import dask.config
import pytest
from distributed import wait

import daskscope
from daskscope import login, wire
from daskscope.agent import NAME
from daskscope.compression import decompress
from daskscope.options import OPTIONS
from daskscope.previews import Preview
from daskscope.shelf import place_of
from daskscope.watch import EXTENSION
from tests.plugin.ingest_server import Server, answers
from tests.plugin.rig import Cluster, inc, running, spooled, until

ROOT = Path(__file__).parents[2]

SWITCHES = "tests/plugin/canaries/test_switches.py::test_what_is_off_does_not_leave_and_what_is_on_does"
HEEDED = {
    "server": "test_server_and_tokens",
    "token": "test_server_and_tokens",
    "ingest-token": "test_server_and_tokens",
    "account": "test_account",
    "data": "test_data",
    "spool": "test_spool",
    "name": "test_name_and_tags",
    "tags": "test_name_and_tags",
    "analytics.disabled": "tests/plugin/test_registration.py::test_disabled_nothing_is_sent_and_it_says_so",
    "analytics.interval": "test_interval",
    "analytics.computation.code.transmit": SWITCHES,
    "analytics.computation.interval": "test_computation_interval",
    "analytics.exceptions.transmit": SWITCHES,
    "analytics.events.allow": "test_events_allow",
    "analytics.events.interval": "test_events_interval",
    "analytics.logs.level": "test_logs_level",
    "analytics.profile.transmit": SWITCHES,
    "analytics.profile.interval": "test_profile_interval",
    "analytics.tasks.transmit": SWITCHES,
    "analytics.hardware.transmit": SWITCHES,
    "analytics.idle.timeout": "test_idle_timeout",
    "analytics.remote-close": "test_remote_close",
    "analytics.scrub.secrets": SWITCHES,
    "analytics.scrub.words": "test_scrub_words_and_patterns",
    "analytics.scrub.patterns": "test_scrub_words_and_patterns",
    "analytics.budget": "tests/plugin/test_watch_budget.py::"
    "test_a_dear_reader_makes_messages_rarer_then_briefer_until_it_is_cheap_again",
}
"""Option to the test that it is heeded: here, or in another file."""


def test_every_option_has_a_test_that_it_is_heeded() -> None:
    assert HEEDED.keys() == {option.key for option in OPTIONS}
    for place in HEEDED.values():
        file, _, name = place.rpartition("::")
        text = (ROOT / file if file else Path(__file__)).read_text()
        assert re.search(rf"^(?:async )?def {name}\(", text, re.M), place


async def registered(cluster: Cluster, **options: Any) -> None:
    """With an interval at which nothing happens unless the test asks for it; names of options with `__` for dots."""
    given = {f"daskscope.analytics.{key.replace('__', '.')}": value for key, value in options.items()}
    with dask.config.set({"daskscope.analytics.interval": "1h"} | given):
        found: Any = daskscope.register(cluster.client)
        await found


async def next_message(cluster: Cluster) -> dict[str, Any]:
    shown: Any = daskscope.preview(cluster.client)
    found = await shown
    assert isinstance(found, Preview)
    assert found.sent
    return json.loads(found.json)


@pytest.mark.asyncio
@pytest.mark.parametrize(("ingest_token", "sent"), [("dst_in", "dst_in"), (None, "dst_all")])
async def test_server_and_tokens(cluster: Cluster, ingest_token: str | None, sent: str) -> None:
    server = Server(answers(200, {"id": 7, "url": "/x"}))
    with server.running() as url:
        configured = {"server": url, "token": "dst_all", "ingest-token": ingest_token}
        with dask.config.set({f"daskscope.{key}": value for key, value in configured.items()}):
            await registered(cluster)
        await until(lambda: server.posts)
        cluster.scheduler.extensions[EXTENSION].teardown()
    path, headers, body = server.posts[0]
    assert (path, headers["authorization"]) == ("/api/v1/telemetry", f"Bearer {sent}")
    plain = decompress(body, headers["content-encoding"])
    assert json.loads(plain)["identity"]["scheduler_id"] == cluster.scheduler.id
    assert b"dst_" not in plain


@pytest.mark.asyncio
@pytest.mark.parametrize(("argument", "sent"), [(None, "team"), ("other", "other")])
async def test_account(cluster: Cluster, argument: str | None, sent: str) -> None:
    server = Server(answers(200, {"id": 7, "url": "/x"}))
    with server.running() as url:
        login.keep(login.Login(server=url, token="dst_asks", ingest_token="dst_in", account="team", user="ann"))
        with dask.config.set({"daskscope.analytics.interval": "1h"}):
            found: Any = daskscope.register(cluster.client, account=argument)
            await found
        await until(lambda: server.posts)
        watch = cluster.scheduler.extensions[EXTENSION]
        watch.teardown()
    _, headers, _ = server.posts[0]
    assert (headers["daskscope-account"], headers["authorization"]) == (sent, "Bearer dst_in")
    assert watch._settings.login is None, "the rest of it stays here"


@pytest.mark.asyncio
async def test_data(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    async with running() as cluster:
        with dask.config.set({"daskscope.data": str(folder)}):
            await registered(cluster)
    assert [message.phase for message in spooled(folder)] == ["running", "closed"]


@pytest.mark.asyncio
async def test_spool(tmp_path: Path) -> None:
    server = Server(answers(503))
    with server.running() as url:
        place = place_of(tmp_path / "spool", url, "t")
        configured = {"daskscope.server": url, "daskscope.token": "t", "daskscope.spool": str(tmp_path / "spool")}
        with dask.config.set(configured):
            async with running() as cluster:
                await registered(cluster)
                await until(lambda: list(place.glob("*.msg")))
            assert [path.suffix for path in sorted(place.iterdir())] == [".msg", ".msg"], "the last message, too"
            server.answer = answers(200, {"id": 7, "url": "/x"})
            server.posts.clear()
            async with running() as cluster:
                await registered(cluster)
                await until(lambda: not list(place.glob("*.msg")))
            assert list(place.iterdir()) == []
    taken = [wire.decode(decompress(body, headers["content-encoding"])) for _, headers, body in server.posts]
    assert [(message.seq, message.phase) for message in taken[1:3]] == [(0, "running"), (1, "closed")]
    assert len({message.boot for message in taken}) == 2


@pytest.mark.asyncio
async def test_name_and_tags(cluster: Cluster, data: Path) -> None:
    with dask.config.set({"daskscope.name": "nightly", "daskscope.tags": {"team": "x"}}):
        await registered(cluster)
    await until(lambda: spooled(data))
    identity = spooled(data)[0].identity
    assert identity is not None
    assert (identity.name, identity.tags) == ("nightly", {"team": "x"})


@pytest.mark.asyncio
async def test_interval(cluster: Cluster) -> None:
    await registered(cluster, interval="90s")
    assert (await next_message(cluster))["next_s"] == 90.0


WORK = ("groups", "spans", "computations")


@pytest.mark.asyncio
@pytest.mark.parametrize(("value", "told"), [(None, True), ("1h", False)])
async def test_computation_interval(data: Path, value: str | None, told: bool) -> None:
    async with running() as cluster:
        await registered(cluster, computation__interval=value)
        await next_message(cluster)
        future = cluster.client.submit(inc, 1)
        await wait(future)
        message = await next_message(cluster)
    assert message["totals"]["n_computations"] == 1
    assert all((part in message) is told for part in WORK)
    whole = spooled(data)
    assert sum(len(each.computations) for each in whole) == 1, "told once, at the end at the latest"
    assert {name for each in whole for name in each.groups.name} == {"inc"}


def topics(message: dict[str, Any]) -> list[str]:
    return [event["topic"] for event in message.get("events", [])]


@pytest.mark.asyncio
@pytest.mark.parametrize(("value", "told"), [(None, ["mine"]), ("1h", [])])
async def test_events_interval(data: Path, value: str | None, told: list[str]) -> None:
    async with running() as cluster:
        await registered(cluster, events__allow=["mine"], events__interval=value)
        await next_message(cluster)
        await cluster.client.log_event("mine", {"action": "said"})
        assert topics(await next_message(cluster)) == told
    assert [event.topic for each in spooled(data) for event in each.events].count("mine") == 1


@pytest.mark.asyncio
@pytest.mark.parametrize(("allowed", "told"), [(["mine"], {"mine"}), (["*"], {"mine", "other"}), ([], set[str]())])
async def test_events_allow(cluster: Cluster, allowed: list[str], told: set[str]) -> None:
    await registered(cluster, events__allow=allowed)
    await next_message(cluster)
    for topic in ("mine", "other"):
        await cluster.client.log_event(topic, {"action": "said"})
    message = await next_message(cluster)
    assert {topic for topic in topics(message) if topic in ("mine", "other")} == told
    assert allowed or "events" not in message


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("level", "told"), [("info", ["quiet", "loud"]), ("warning", ["loud"]), ("critical", []), ("off", [])]
)
async def test_logs_level(cluster: Cluster, level: str, told: list[str]) -> None:
    logger = logging.getLogger("tests.options")
    logger.setLevel("INFO")
    await registered(cluster, logs__level=level)
    await next_message(cluster)
    logger.info("quiet")
    logger.warning("loud")
    lines = (await next_message(cluster)).get("logs", {"logger": [], "text": []})
    found = [text for name, text in zip(lines["logger"], lines["text"], strict=True) if name == "tests.options"]
    assert found == told


@pytest.mark.asyncio
async def test_profile_interval(cluster: Cluster) -> None:
    await registered(cluster, profile__interval="7s", logs__level="off", hardware__transmit=False)
    plugins: Any = cluster.workers[0].plugins
    await until(lambda: NAME in plugins and plugins[NAME]._profiler)
    assert plugins[NAME]._profiler._interval_s == 7.0


@pytest.mark.asyncio
async def test_idle_timeout(cluster: Cluster) -> None:
    await registered(cluster, idle__timeout="20m")
    assert cluster.scheduler.idle_timeout == 1200.0
    assert (await next_message(cluster))["totals"]["idle_timeout_us"] == 1_200_000_000


@pytest.mark.asyncio
@pytest.mark.parametrize("allowed", [True, False])
async def test_remote_close(data: Path, allowed: bool) -> None:
    server = Server(answers(200, {"id": 7, "url": "/x", "wish": ["close"]}))
    with server.running() as url:
        async with running() as cluster:
            with dask.config.set({"daskscope.server": url, "daskscope.analytics.remote-close": allowed}):
                await registered(cluster)
            await until(lambda: server.posts)
            watching = cluster.scheduler.extensions[EXTENSION]
            await until(lambda: watching.sender.n_delivered)
            assert watching._closer._asked is allowed
            watching._closer.close()
        _, headers, body = server.posts[0]
    identity = json.loads(decompress(body, headers["content-encoding"]))["identity"]
    assert identity.get("remote_close", True) is allowed


def fail(patient_id: str) -> None:
    raise ValueError(f"patient_id={patient_id!r}, record MRN-123456")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, {"Jane-Smith-7", "MRN-123456"}),
        ({"scrub__words": ["patient_id"]}, {"MRN-123456"}),
        ({"scrub__patterns": ["MRN-[0-9]+"]}, {"Jane-Smith-7"}),
    ],
)
async def test_scrub_words_and_patterns(cluster: Cluster, options: dict[str, Any], left: set[str]) -> None:
    # What a task is named after would tell; and its code stands in the traceback, as nothing but a pattern.
    await registered(cluster, **options)
    await next_message(cluster)
    future = cluster.client.submit(fail, "Jane-Smith-7", key="failing")
    await wait(future)
    (family,) = (await next_message(cluster))["exceptions"]
    assert {word for word in ("Jane-Smith-7", "MRN-123456") if word in family["text"]} == left
