"""`preview()`: the bytes that leave, once; and of a cluster that does not report, without a trace."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import threading
from collections import deque
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import dask.config
import pytest
from distributed import Client, Scheduler, wait
from hypothesis import given, settings
from hypothesis import strategies as st
from tornado.ioloop import PeriodicCallback

import daskscope
from daskscope import previews, wire
from daskscope.compression import decompress
from daskscope.errors import DaskscopeError, NotOnScheduler, SettingsError
from daskscope.outcome import Outcome
from daskscope.previews import Preview
from daskscope.registration import needs_daskscope
from daskscope.watch import EXTENSION
from tests.plugin.rig import Cluster, Inbox, boom, group_rows, inc, look_at, running, watch
from tests.plugin.test_registration import DEAD, scheduler_without_daskscope

EVERYTHING = {
    "daskscope.analytics.tasks.transmit": True,
    "daskscope.analytics.events.allow": ["*"],
    "daskscope.analytics.logs.level": "debug",
    "daskscope.analytics.idle.timeout": "1h",
}


async def preview(client: Client) -> Preview:
    result: Any = daskscope.preview(client)
    return await result


@pytest.mark.asyncio
async def test_a_cluster_that_reports_sends_what_it_shows_once(cluster: Cluster) -> None:
    inbox = Inbox()
    watching = watch(cluster.scheduler, inbox)
    await inbox.next()
    futures = [*cluster.client.map(inc, range(3)), cluster.client.submit(boom, 1)]
    await wait(futures)
    shown = await preview(cluster.client)
    sent = await inbox.next()
    assert inbox.bodies[-1].decode() == shown.json
    assert decompress(shown.body, shown.encoding) == inbox.bodies[-1]
    assert shown.message == json.loads(shown.json)
    assert wire.decode(shown.json.encode()) == sent
    assert shown.sent
    watching.poll()
    after = await inbox.next()
    assert (sent.seq, after.seq) == (1, 2)
    assert sum(family.count for family in sent.exceptions) == 1
    assert (after.exceptions, after.computations, group_rows(after)) == ([], [], [])
    assert (after.lost, watching.sender._shown) == ({}, {})


@pytest.mark.asyncio
async def test_where_it_goes_is_said_and_the_token_nowhere(cluster: Cluster, data: Path) -> None:
    with dask.config.set({"daskscope.server": DEAD, "daskscope.token": "dst_secret"}):
        before = await preview(cluster.client)
        await daskscope.register(cluster.client)  # type: ignore[misc]
        after = await preview(cluster.client)
    assert [(each.server, each.spool, each.sent) for each in (before, after)] == [
        (DEAD, None, False),
        (DEAD, None, True),
    ]
    for each in before, after:
        assert DEAD in each.heading
        assert f"{len(each.body):,} bytes as posted ({each.encoding})" in each.heading
        assert "dst_secret" not in repr(each) + each._repr_html_() + each.json + each.pretty
    assert "Nothing was sent." in before.heading
    assert "Nothing was sent." not in after.heading
    with dask.config.set({"daskscope.server": None}):
        assert (await preview(cluster.client)).server == DEAD, "what is in force there counts"
    assert not (data / "spool").exists()


@pytest.mark.asyncio
async def test_a_folder_in_place_of_a_server_is_said_and_a_rehearsal_leaves_nothing_anywhere(
    cluster: Cluster, tmp_path: Path
) -> None:
    with dask.config.set({"daskscope.server": f"file://{tmp_path}/shared", "daskscope.spool": str(tmp_path / "spool")}):
        shown = await preview(cluster.client)
    assert (shown.server, shown.spool) == (f"file://{tmp_path}/shared", str(tmp_path / "shared" / "spool"))
    assert f"for file://{tmp_path}/shared." in shown.heading
    with dask.config.set({"daskscope.server": DEAD, "daskscope.spool": str(tmp_path / "spool")}):
        await preview(cluster.client)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_watched", [False, True])
@pytest.mark.parametrize(
    "configured", [{}, {"daskscope.server": DEAD}, {"daskscope.analytics.disabled": True, "daskscope.server": DEAD}]
)
@pytest.mark.asyncio
async def test_to_look_takes_no_token_to_the_scheduler(
    configured: dict[str, Any], is_watched: bool, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_watched:
        inbox = Inbox()
        watch(cluster.scheduler, inbox)
        await inbox.next()
    ask, handed = cluster.client.run_on_scheduler, list[Any]()

    def overheard(function: Any, *given: Any) -> Any:
        handed.extend(given)
        return ask(function, *given)

    monkeypatch.setattr(cluster.client, "run_on_scheduler", overheard)
    tokens = {"daskscope.token": "dst_all", "daskscope.ingest-token": "dst_in"}
    with dask.config.set({**tokens, **configured}):
        shown = await preview(cluster.client)
    assert [(each.token, each.ingest_token) for each in handed] == [(None, None)]
    assert shown.sent == is_watched
    assert bool(shown.json) == (is_watched or "daskscope.analytics.disabled" not in configured)


@pytest.mark.asyncio
async def test_what_is_shown_is_what_will_be_tried_again(cluster: Cluster) -> None:
    answers = [Outcome("kept", ""), Outcome("again", "HTTP 503")]
    inbox = Inbox(lambda _: answers.pop(0) if answers else Outcome("kept", ""))
    watching = watch(cluster.scheduler, inbox)
    await inbox.next()
    shown = await preview(cluster.client)
    assert [parcel.body for parcel in watching.sender._buffer.in_memory_alone()] == [shown.body]


@pytest.mark.asyncio
async def test_a_message_that_cannot_be_packed_is_an_error_at_once(cluster: Cluster) -> None:
    inbox = Inbox()
    watching = watch(cluster.scheduler, inbox)
    await inbox.next()
    watching.cluster = float("nan")  # type: ignore[assignment]
    with pytest.raises(DaskscopeError, match="the scheduler's log says why"):
        await preview(cluster.client)
    assert watching.sender.lost == {"not-encodable": 1}


@pytest.mark.asyncio
async def test_a_sender_that_is_gone_is_an_error_too(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.rehearsal.SHOW_S", 0.01)
    inbox = Inbox()
    watching = watch(cluster.scheduler, inbox)
    await inbox.next()
    await asyncio.to_thread(watching.sender.close)
    with pytest.raises(DaskscopeError, match="not packed within"):
        await preview(cluster.client)
    assert watching.sender._shown == {}


def periodic_callbacks() -> set[int]:
    return {id(found) for found in gc.get_objects() if isinstance(found, PeriodicCallback) and found.is_running()}


def events_of(scheduler: Scheduler) -> dict[Any, tuple[int | None, list[Any]]]:
    """Topics with the length that Dask gives them and what is in them, but for calls of functions: Dask notes each."""
    old: Any = scheduler
    broker = getattr(scheduler, "_broker", None)
    topics = dict(old.events) if broker is None else {name: topic.events for name, topic in broker._topics.items()}

    def is_call(message: Any) -> bool:
        return isinstance(message, dict) and message.get("action") == "run-function"

    return {
        name: (getattr(events, "maxlen", None), [event for event in events if not is_call(event[1])])
        for name, events in topics.items()
    }


def state_of(cluster: Cluster) -> dict[str, Any]:
    """All that daskscope changes where a cluster reports, in scheduler, workers and this process."""
    scheduler: Any = cluster.scheduler
    broker = getattr(scheduler, "_broker", None)
    loggers = [each for each in logging.Logger.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    return {
        "extensions": dict(scheduler.extensions),
        "handlers": dict(scheduler.handlers),
        "stream handlers": dict(scheduler.stream_handlers),
        "plugins": dict(scheduler.plugins),
        "memories": [(type(each), each.maxlen, list(each)) for each in (scheduler.erred_tasks, scheduler.computations)],
        "memory types": [type(scheduler.erred_tasks) is deque, type(scheduler.computations) is deque],
        "events": events_of(scheduler),
        "topics": scheduler.events.default_factory if broker is None else broker._topics.default_factory,
        "idle timeout": scheduler.idle_timeout,
        "timers": periodic_callbacks(),
        "threads": {thread.name for thread in threading.enumerate() if "daskscope" in thread.name},
        "workers' plugins": [sorted(worker.plugins) for worker in cluster.workers],
        "record factory": logging.getLogRecordFactory(),
        "last resort": logging.lastResort,
        "log handlers": {each.name: list(each.handlers) for each in [logging.root, *loggers] if each.handlers},
    }


@pytest.mark.asyncio
async def test_of_a_cluster_that_does_not_report_nothing_stays_behind(cluster: Cluster, data: Path) -> None:
    futures = [*cluster.client.map(inc, range(3)), cluster.client.submit(boom, 1)]
    await wait(futures)
    await cluster.client.run_on_scheduler(inc, 1)  # what Dask itself does once
    before = state_of(cluster)
    with dask.config.set(EVERYTHING):
        first, second = await preview(cluster.client), await preview(cluster.client)
    assert state_of(cluster) == before
    assert not data.exists(), "no spool"
    assert not first.sent
    for shown in first, second:
        assert shown.message is not None
        assert (shown.message["seq"], shown.message["totals"]["n_tasks"]) == (0, 4)
        assert [family["type"] for family in shown.message["exceptions"]] == ["ValueError"]
    with dask.config.set(EVERYTHING):
        await daskscope.register(cluster.client)  # type: ignore[misc]
        assert state_of(cluster) != before, "what is compared would show"


@pytest.mark.asyncio
async def test_the_first_message_of_a_cluster_is_as_the_preview_had_it() -> None:
    async with running(0) as cluster:
        with dask.config.set({"daskscope.name": "nightly", "daskscope.tags": {"team": "x"}}):
            shown = await preview(cluster.client)
            look = await look_at(cluster.scheduler, name="nightly", tags={"team": "x"})
    assert shown.message is not None
    real: Any = json.loads(wire.encode(look.first))
    assert shown.message["identity"] == real["identity"]
    assert shown.message["identity"]["tags"] == {"team": "x"}
    # What stands in the scheduler's environment and machine is looked up in a thread, here done by then or not.
    looked_up = {"environment", "hardware", "environments"}
    assert len(real["members"]) == 2
    for one, other in zip(shown.message["members"], real["members"], strict=True):
        assert {k: one[k] for k in one.keys() - looked_up} == {k: other[k] for k in other.keys() - looked_up}
    assert shown.message.keys() - looked_up == real.keys() - looked_up


@pytest.mark.asyncio
async def test_log_lines_of_before_are_in_it_from_the_level_that_is_set(cluster: Cluster) -> None:
    logging.getLogger("distributed.scheduler").warning("said before anybody asked")
    said = "said before anybody asked"
    assert said in (await preview(cluster.client)).json
    with dask.config.set({"daskscope.analytics.logs.level": "off"}):
        assert said not in (await preview(cluster.client)).json


@pytest.mark.asyncio
async def test_disabled_it_says_that_nothing_leaves(cluster: Cluster) -> None:
    with dask.config.set({"daskscope.analytics.disabled": True, "daskscope.server": DEAD}):
        shown = await preview(cluster.client)
    assert (shown.json, shown.message, shown.body, shown.server, shown.sent) == ("", None, b"", None, False)
    for text in repr(shown), shown._repr_html_():
        assert "nothing leaves this cluster" in text
        assert "daskscope.analytics.disabled" in text
    assert EXTENSION not in cluster.scheduler.extensions


@pytest.mark.asyncio
async def test_disabled_here_a_cluster_that_reports_all_the_same_is_shown_as_it_is(cluster: Cluster) -> None:
    inbox = Inbox()
    watch(cluster.scheduler, inbox)
    await inbox.next()
    with dask.config.set({"daskscope.analytics.disabled": True}):
        assert (await preview(cluster.client)).sent


@pytest.mark.asyncio
async def test_a_scheduler_without_daskscope_is_one_sentence(tmp_path: Path) -> None:
    with scheduler_without_daskscope(tmp_path) as address:
        async with Client(address, asynchronous=True) as client:
            with pytest.raises(NotOnScheduler, match=f"not installed on the scheduler at {address}"):
                await preview(client)


@pytest.mark.asyncio
async def test_an_older_daskscope_there_is_said_too(cluster: Cluster) -> None:
    older = f"an older release on the scheduler at {cluster.scheduler.address}"
    with pytest.raises(NotOnScheduler, match=older), needs_daskscope(cluster.client):
        raise ModuleNotFoundError("No module named 'daskscope.rehearsal'", name="daskscope.rehearsal")
    with pytest.raises(ModuleNotFoundError), needs_daskscope(cluster.client):
        raise ModuleNotFoundError("No module named 'theirs'", name="theirs")


@pytest.mark.asyncio
async def test_a_synchronous_client_gets_the_preview_itself(cluster: Cluster) -> None:
    def script() -> None:
        with Client(cluster.scheduler.address):
            assert isinstance(daskscope.preview(), Preview)

    await asyncio.to_thread(script)


@pytest.mark.asyncio
async def test_a_setting_that_cannot_be_used_is_said_here(cluster: Cluster) -> None:
    with dask.config.set({"daskscope.analytics.interval": "soon"}), pytest.raises(SettingsError, match="interval"):
        daskscope.preview(cluster.client)


def test_without_a_client_it_says_what_to_do() -> None:
    with pytest.raises(DaskscopeError, match=r"create one first, `Client\(\.\.\.\)`"):
        daskscope.preview()


def made(**message: Any) -> Preview:
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return Preview("http://h:1", None, sent=True, json=text, body=b"x" * 1234, encoding="zstd")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(), inner, max_size=10),
)


@settings(max_examples=30)
@given(json_values)
def test_what_is_laid_out_is_the_same_json_and_prints(value: Any) -> None:
    text = previews.pretty(value)
    assert json.loads(text) == value
    assert all(line.isprintable() for line in text.split("\n"))


def test_columns_stand_many_in_a_line_and_rows_below_each_other() -> None:
    text = made(workers={"memory_mib": list(range(1000, 1100))}, members=[{"id": "x" * 60}, {"id": "y" * 60}]).pretty
    lines = text.split("\n")
    assert max(map(len, lines)) <= previews.WIDTH + 1
    assert '    {"id": "' + "x" * 60 + '"},' in lines
    assert len(lines) < 25


def test_a_long_one_says_how_much_more_there_is() -> None:
    shown = made(codes=["x" * previews.MAX_SHOWN])
    n_more = len(shown.pretty) - previews.MAX_SHOWN
    assert f"... {n_more:,} more characters: see .json" in repr(shown)
    assert len(shown.json) > previews.MAX_SHOWN


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes.update(name for name, _ in attrs)


def test_what_a_message_says_is_no_markup_and_no_order_to_a_terminal() -> None:
    shown = made(cluster="<script>alert(1)</script>", events=[{"topic": "<img onerror=x>\x1b[2J\x9b1m\u202e"}])
    tags = Tags()
    tags.feed(shown._repr_html_())
    assert tags.found == {"p", "pre", "details", "summary", "code"}
    assert tags.attributes == {"style"}
    assert "\\u001b[2J\\u009b1m\\u202e" in repr(shown)
    assert "color" not in shown._repr_html_(), "as light or dark as the notebook"
