"""`register()` and the preloads, against real schedulers, one of them without daskscope."""

import asyncio
import contextlib
import json
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import dask.config
import pytest
from distributed import Client
from distributed.protocol import pickle as dask_pickle

import daskscope
from daskscope import admission, login, registration
from daskscope.api_version import VERSION_HEADER
from daskscope.collect.identity import cluster_uuid
from daskscope.discovery import rendezvous
from daskscope.errors import DaskscopeError, NotOnScheduler, SettingsError
from daskscope.registration import Registration, dask_setup
from daskscope.scheduler_plugin import Starter
from daskscope.watch import EXTENSION
from tests.plugin.api_server import Answer, ApiServer
from tests.plugin.rig import Cluster, inc, quiet_scheduler, running, settings, spooled
from tests.plugin.worker_process import LACKS_DASKSCOPE

pytestmark = pytest.mark.asyncio

DEAD = "http://127.0.0.1:1"
"""A server on this machine that nobody answers for."""


OURS = {VERSION_HEADER: "0.1.0"}
"""By which a server shows what it is."""


def error(message: str) -> dict[str, Any]:
    return {"error": {"code": "x", "message": message}}


def whose(scopes: list[str], role: str) -> dict[str, Any]:
    return {"account": "climate", "name": "lap", "scopes": scopes, "user": "bea", "role": role}


async def register(*args: Any, **kwargs: Any) -> Registration:
    result: Any = daskscope.register(*args, **kwargs)
    return await result


async def test_with_nothing_configured_a_spool_is_kept_and_said(
    cluster: Cluster, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = await register(cluster.client)
    assert found == Registration(cluster_uuid(cluster.scheduler.id), None, str(data / "spool"))
    out = capsys.readouterr().out
    assert str(data / "spool") in out
    assert "daskscope serve" in out
    assert found.url is None
    assert "daskscope serve" in found._repr_html_()


async def test_a_folder_in_place_of_a_server_keeps_the_messages_and_is_said(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shared = tmp_path / "shared folder"
    with dask.config.set({"daskscope.server": shared.as_uri(), "daskscope.token": "dst_secret"}):
        found = await register(cluster.client)
    assert found == Registration(cluster_uuid(cluster.scheduler.id), shared.as_uri(), str(shared / "spool"))
    assert found.url is None
    out = capsys.readouterr().out
    assert f"daskscope serve --data '{shared}'" in out
    assert f"daskscope import '{shared}'" in out
    assert cluster.scheduler.extensions["daskscope"]._settings.token is None, "nobody there asks for one"
    cluster.scheduler.extensions["daskscope"].teardown()
    assert [message.phase for message in spooled(shared)] == ["running", "closed"]


async def test_a_configured_server_and_token_are_shipped_and_its_page_is_printed(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    with dask.config.set({"daskscope.server": DEAD + "/", "daskscope.token": "dst_secret"}):
        found = await register(cluster.client, name="nightly", tags={"team": "weather"})
    uuid = cluster_uuid(cluster.scheduler.id)
    assert found.url == f"{DEAD}/c/{uuid}"
    assert capsys.readouterr().out == f"daskscope: this cluster can be seen at {DEAD}/c/{uuid}\n"
    assert f'<a href="{DEAD}/c/{uuid}">' in found._repr_html_()
    shipped = cluster.scheduler.extensions[EXTENSION]._settings
    assert (shipped.server, shipped.token, shipped.name) == (DEAD, "dst_secret", "nightly")
    assert shipped.tags == {"team": "weather"}


async def test_arguments_win_over_the_configuration(cluster: Cluster) -> None:
    with dask.config.set({"daskscope.server": "http://127.0.0.1:2", "daskscope.token": "dst_other"}):
        await register(cluster.client, server=DEAD, token="dst_mine")
    shipped = cluster.scheduler.extensions[EXTENSION]._settings
    assert (shipped.server, shipped.token) == (DEAD, "dst_mine")


async def test_a_second_call_returns_the_same_and_starts_nothing(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    first = await register(cluster.client, server=DEAD)
    capsys.readouterr()
    watching = cluster.scheduler.extensions[EXTENSION]
    assert await register(cluster.client) is first
    assert cluster.scheduler.extensions[EXTENSION] is watching
    assert capsys.readouterr().out == ""


async def test_another_client_of_the_cluster_gets_the_same_registration(cluster: Cluster) -> None:
    first = await register(cluster.client, server=DEAD)
    async with Client(cluster.scheduler.address, asynchronous=True) as other:
        assert await register(other) == first


async def test_the_current_client_is_meant_if_none_is_given(cluster: Cluster) -> None:
    with cluster.client.as_current():
        found = await register()
    assert found.cluster == cluster_uuid(cluster.scheduler.id)


async def test_links_are_by_the_address_that_the_server_of_this_machine_tells(cluster: Cluster, data: Path) -> None:
    meeting = rendezvous(data, 1)
    meeting.parent.mkdir(parents=True)
    told = {"url": DEAD, "token": "t", "ingest_token": "i", "pid": os.getpid(), "address": "https://daskscope.org"}
    meeting.write_text(json.dumps(told))
    meeting.chmod(0o600)
    found = await register(cluster.client, server=DEAD)
    assert found.url == f"https://daskscope.org/c/{found.cluster}"
    assert (found.server, cluster.scheduler.extensions[EXTENSION]._settings.server) == (DEAD, DEAD)


@pytest.mark.parametrize(
    ("status", "told", "said"),
    [
        (404, error("No account climate for this token."), "No account climate for this token. Meanwhile"),
        (401, error("The token 'x' was revoked: ask for a new one."), "was revoked"),
        (200, whose(["read"], "viewer"), "bea is a viewer of account climate, and members report"),
        (200, whose(["read"], "member"), "'lap' of account climate may not report from clusters"),
    ],
)
async def test_who_may_not_report_is_told_in_place_of_a_page(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], status: int, told: dict[str, Any], said: str
) -> None:
    with ApiServer(lambda *_: (status, told, OURS)).running() as server:
        found = await register(cluster.client, server=server.url, token="dst_mine", account="climate")
    assert ("/api/v1/whoami", {}, "Bearer dst_mine") in server.asked
    out = capsys.readouterr().out
    assert out.startswith(f"daskscope: {server.url} does not take this cluster's messages. ")
    assert said in out
    assert "can be seen" not in out
    assert "<a " not in found._repr_html_()


async def test_without_a_token_to_ship_it_is_told(cluster: Cluster) -> None:
    nobody = error("No token came with the request.")
    with ApiServer(lambda *_: (401, nobody, OURS)).running() as server:
        login.keep(login.Login(server=server.url, token="dks_asks", account="acme", user="bea"))
        found = await register(cluster.client)
    assert "there is none that may report, as for viewers" in str(found)


@pytest.mark.parametrize("answer", [(404, {}), (401, {}), (500, {}, OURS), (200, whose(["ingest"], "member"), OURS)])
async def test_nobody_is_told_what_the_server_did_not_say(cluster: Cluster, answer: Answer) -> None:
    with ApiServer(lambda *_: answer).running() as server:
        found = await register(cluster.client, server=server.url, token="dst_mine")
    assert found.refusal is None


async def test_a_server_that_says_nothing_is_not_waited_for(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "ANSWER_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = await register(cluster.client, server=f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert found.refusal is None


async def test_without_a_client_the_error_says_what_to_do() -> None:
    with pytest.raises(DaskscopeError, match=r"create one first, `Client\(\.\.\.\)`"):
        daskscope.register()


async def test_a_server_of_this_machine_is_found_and_only_its_ingest_token_is_shipped(
    cluster: Cluster, data: Path
) -> None:
    file = rendezvous(data, 1)
    file.parent.mkdir(parents=True)
    file.touch(0o600)
    found = {"url": DEAD, "token": "dst_all", "ingest_token": "dst_in", "pid": os.getpid(), "data": str(data)}
    file.write_text(json.dumps(found))
    assert (await register(cluster.client, server=DEAD)).server == DEAD
    assert cluster.scheduler.extensions[EXTENSION]._settings.token == "dst_in"


async def test_the_token_that_reads_stays_where_the_user_is(cluster: Cluster) -> None:
    with dask.config.set({"daskscope.ingest-token": "dst_in"}):
        await register(cluster.client, server=DEAD, token="dst_all")
    shipped = cluster.scheduler.extensions[EXTENSION]._settings
    assert (shipped.token, shipped.ingest_token) == ("dst_in", None)


async def test_where_there_is_no_server_no_token_is_shipped(cluster: Cluster) -> None:
    with dask.config.set({"daskscope.ingest-token": "dst_in", "daskscope.token": "dst_all"}):
        assert (await register(cluster.client)).spool
    shipped = cluster.scheduler.extensions[EXTENSION]._settings
    assert (shipped.token, shipped.ingest_token) == (None, None)


async def test_disabled_nothing_is_sent_and_it_says_so(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    with dask.config.set({"daskscope.analytics.disabled": True}):
        found = await register(cluster.client)
    assert (found.server, found.spool) == (None, None)
    assert "reporting is disabled (daskscope.analytics.disabled)" in capsys.readouterr().out
    assert EXTENSION not in cluster.scheduler.extensions
    assert (await register(cluster.client)).spool, "and enabled again, it starts"


async def test_a_setting_that_cannot_be_used_is_raised_where_the_user_is(cluster: Cluster) -> None:
    named = r"daskscope\.analytics\.interval is 'soon'; allowed: a time"
    with dask.config.set({"daskscope.analytics.interval": "soon"}), pytest.raises(SettingsError, match=named):
        daskscope.register(cluster.client)
    with pytest.raises(SettingsError, match=r"daskscope\.server is .* allowed: http://HOST:PORT"):
        daskscope.register(cluster.client, server="localhost")
    assert EXTENSION not in cluster.scheduler.extensions


async def test_the_token_shows_in_no_repr_and_no_log(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        found = await register(cluster.client, server=DEAD, token="dst_secret")
        cluster.scheduler.extensions[EXTENSION].poll()
        starter = Starter(settings(token="dst_secret"))
        dump = str(cluster.scheduler._to_dict())
    shown = repr(found) + str(found) + found._repr_html_() + repr(starter) + repr(starter._settings)
    watching = cluster.scheduler.extensions[EXTENSION]
    shown += repr(watching) + str(watching.describe()) + repr(watching.sender) + repr(watching.sender._transport)
    assert "dst_secret" not in shown + caplog.text
    assert "dst_secret" not in dump


async def test_the_starter_travels_by_reference_and_arrives_whole() -> None:
    given = settings(server=DEAD, token="dst_secret", tags={"a": "b"})
    for dumped in (pickle.dumps(Starter(given)), dask_pickle.dumps(Starter(given))):
        loaded = pickle.loads(dumped)
        assert loaded._settings == given
        assert len(dumped) < 2_000, "no code travels with it"


@pytest.mark.parametrize(
    ("server", "address", "warns"),
    [
        ("http://127.0.0.1:8790", "tcp://192.0.2.7:8786", True),
        ("http://localhost:8790", "tls://[2001:db8::1]:8786", True),
        ("http://127.0.0.1:8790", "tcp://127.0.0.1:8786", False),
        ("http://127.0.0.1:8790", "inproc://192.0.2.7/1/2", False),
        ("https://scope.example.org", "tcp://192.0.2.7:8786", False),
    ],
)
async def test_a_server_that_only_this_machine_can_reach_is_warned_about(
    server: str, address: str, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    class Elsewhere:
        cluster = None

        class scheduler:  # noqa: N801  an attribute of Client's
            pass

    Elsewhere.scheduler.address = address  # type: ignore[attr-defined]
    client: Any = Elsewhere()
    assert registration.resolved(settings(server=server, token="dst_x"), client).server == server
    assert ("cannot reach it" in caplog.text) is warns
    assert (address in caplog.text) is warns


async def test_names_that_somebody_gave_are_taken_and_random_ones_are_not() -> None:
    class Named:
        cluster: Any = None

    client: Any = Named()
    for name, taken in (("gpu-farm", "gpu-farm"), ("0a1b2c3d", None), ("", None), (None, None)):
        client.cluster = type("C", (), {"name": name})
        assert registration._name(client) == taken
    client.cluster = None
    assert registration._name(client) is None


async def test_preload_on_the_scheduler_watches_it_without_any_plugin(data: Path) -> None:
    with dask.config.set({"distributed.scheduler.preload": ["daskscope"]}):
        async with running() as cluster:
            assert EXTENSION in cluster.scheduler.extensions
            assert not [name for name in cluster.scheduler.plugins if "daskscope" in name]
            assert await cluster.client.submit(inc, 1) == 2
            found = await register(cluster.client)
    assert found.spool == str(data / "spool")
    messages = spooled(data)
    assert messages[0].identity is not None
    assert messages[0].identity.address == cluster.scheduler.address
    assert messages[-1].phase == "closed"


async def test_preload_on_the_client_registers(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    with dask.config.set({"distributed.client.preload": ["daskscope"]}):
        async with Client(cluster.scheduler.address, asynchronous=True):
            assert EXTENSION in cluster.scheduler.extensions
    assert "daskscope" in capsys.readouterr().out


async def test_dask_setup_with_a_client_and_with_a_scheduler(cluster: Cluster) -> None:
    await dask_setup(cluster.client)
    assert EXTENSION in cluster.scheduler.extensions
    async with quiet_scheduler() as scheduler:
        await dask_setup(scheduler)
        assert EXTENSION in scheduler.extensions


async def test_dask_setup_with_a_worker_does_nothing(cluster: Cluster) -> None:
    await dask_setup(cluster.workers[0])
    assert EXTENSION not in cluster.workers[0].extensions


async def test_a_bad_setting_never_keeps_a_scheduler_from_starting(caplog: pytest.LogCaptureFixture) -> None:
    config = {"daskscope.analytics.interval": "soon", "distributed.scheduler.preload": ["daskscope"]}
    with dask.config.set(config):
        async with running() as cluster:
            assert await cluster.client.submit(inc, 1) == 2
            assert EXTENSION not in cluster.scheduler.extensions
            await dask_setup(cluster.client)
    assert "daskscope is off: SettingsError: daskscope.analytics.interval is 'soon'" in caplog.text


@contextlib.contextmanager
def scheduler_without_daskscope(folder: Path) -> Generator[str]:
    """The address of a scheduler process in which `import daskscope` fails."""
    (folder / "sitecustomize.py").write_text(LACKS_DASKSCOPE)
    where = folder / "scheduler.json"
    env = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
               "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(where)]  # fmt: skip
    process = subprocess.Popen(
        command, env={**env, "PYTHONPATH": str(folder)}, cwd=folder, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "Scheduler at:" in line:
                yield line.split()[-1]
                break
        else:
            raise AssertionError("the scheduler did not start")
    finally:
        process.terminate()
        process.communicate()


async def test_a_scheduler_without_daskscope_is_one_sentence_with_the_way_to_mend_it(tmp_path: Path) -> None:
    with scheduler_without_daskscope(tmp_path) as address:
        async with Client(address, asynchronous=True) as client:
            with pytest.raises(NotOnScheduler) as caught:
                await register(client)
            assert await client.run_on_scheduler(lambda: "it lives") == "it lives"
            with pytest.raises(NotOnScheduler):
                await register(client)
    text = str(caught.value)
    assert text.startswith(f"daskscope is not installed on the scheduler at {address}.")
    assert "client.register_plugin(PipInstall(['daskscope']))" in text


async def test_a_watch_that_did_not_start_is_said(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.scheduler_plugin.install", lambda scheduler, settings: None)
    with pytest.raises(DaskscopeError, match="its log says why"):
        await register(cluster.client)


async def test_a_synchronous_client_gets_the_registration_itself(cluster: Cluster) -> None:
    def script() -> None:
        with Client(cluster.scheduler.address) as client:
            found = daskscope.register(client)
            assert isinstance(found, Registration)
            assert found.cluster == cluster_uuid(cluster.scheduler.id)
            assert daskscope.register() is found

    await asyncio.to_thread(script)
    assert EXTENSION in cluster.scheduler.extensions
