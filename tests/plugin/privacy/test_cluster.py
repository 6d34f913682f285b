"""The whole way: secrets in all that a real cluster tells, and none of them in the bytes that leave."""

from __future__ import annotations

import json
import linecache
import logging
from pathlib import Path
from typing import Any

import pytest
from distributed import Worker, wait

from daskscope import wire
from daskscope.spool import Spool
from daskscope.transport import Http
from daskscope.watch import Watch
from tests.plugin.canaries.capture import Capture
from tests.plugin.privacy.planted import ALNUM, Maker, Planted, planted
from tests.plugin.rig import Cluster, Inbox, running, settings, spooled, watch

pytestmark = pytest.mark.asyncio

HARD = ('"".join', "pw, user =", "secrets.put", "user,password")
"""What is known to be missed."""


def cases(place: str, seed: int) -> list[Planted]:
    return [case for case in planted(seed) if case.place == place and not any(part in case.text for part in HARD)]


def fails(text: str) -> None:
    raise ValueError(text)


async def run_cell(cluster: Cluster, source: str) -> Any:
    """As a notebook does: Dask finds its lines, and sends them along."""
    name = "<ipython-input-7-privacy>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {"client": cluster.client, "fails": fails, "wait": wait}
    exec(compile(source, name, "exec"), space)
    return await space["cell"]()


async def plant(cluster: Cluster, seed: int) -> list[str]:
    """Do what users do, with secrets in it; which these are."""
    maker, told = Maker(seed), list[str]()
    code = [case for case in cases("code", seed) if "\n" not in case.text and '"""' not in case.text]
    errors, lines, payloads = cases("exception", seed), cases("log", seed), cases("payload", seed)
    body = "".join(f"    # {case.text}\n" for case in code)
    await run_cell(cluster, f"async def cell():\n{body}    await client.submit(sum, [1, 2])\n")
    tasks = [cluster.client.submit(fails, case.text, key=f"fails-{n}") for n, case in enumerate(errors)]
    traced = maker.password()
    raising = f'        raise KeyError(dict(password="{traced}"))\n'
    cell = f"async def cell():\n    def job():\n{raising}    return client.submit(job)\n"
    tasks.append(await run_cell(cluster, cell))
    named = [maker.key_of(service) for service in ("github", "slack", "aws", "jwt")]
    tasks += [cluster.client.submit(sum, [n], key=f"load {key}") for n, key in enumerate(named)]
    await wait(tasks)
    for case in lines:
        logging.getLogger("job").warning(case.text)
    under = maker.of("abcdefghij ", 30)
    for case in payloads:
        cluster.scheduler.log_event("of-the-user", json.loads(case.text))
    cluster.scheduler.log_event("of-the-user", {"action": "x", "db": {"password": under}, "note": named[0]})
    for case in (*code, *errors, *lines, *payloads):
        told += case.secrets
    return [*told, traced, under, *named]


def left(secrets: list[str], bodies: list[bytes]) -> list[str]:
    found: list[str] = []
    for body in bodies:
        text = json.dumps(json.loads(body), ensure_ascii=False)
        found += [secret for secret in secrets if secret in text or json.dumps(secret)[1:-1] in text]
    return found


async def test_no_secret_is_in_what_a_cluster_sends() -> None:
    maker = Maker(41)
    token, worker, tag = maker.of(ALNUM, 30) + "-own", "w " + maker.key_of("openai"), maker.password()
    async with (
        running(n_workers=0) as cluster,
        Worker(cluster.scheduler.address, nthreads=1, name=worker, dashboard=False),
    ):
        inbox = Inbox()
        watching = watch(
            cluster.scheduler, inbox, events=("*",), token=token, ingest_token="dk" + "s_own", logs=20,
            tags={"api_key": tag, "dsn": f"redis://:{tag}@cache"}, name=f"nightly {maker.key_of('gitlab')}",
        )  # fmt: skip
        await inbox.next()
        secrets = [*await plant(cluster, 42), token, worker[2:], tag]
        logging.getLogger("job").error("reporting with %s", token)
        await tell_all(watching, inbox)
    assert len(secrets) > 130
    bodies = inbox.bodies
    messages = [wire.decode(body) for body in bodies]
    assert not left(secrets, bodies)
    assert any(message.codes for message in messages)
    assert sum(family.count for message in messages for family in message.exceptions) >= 10
    assert sum(len(message.logs.no) for message in messages) >= 15
    assert sum(event.topic == "of-the-user" for message in messages for event in message.events) >= 10
    texts = " ".join(code.text for message in messages for code in message.codes)
    assert texts.count("[secret]") > 40
    frames = {f.code for m in messages for c in m.computations for call in c.code for f in call}
    assert frames == {code.hash for message in messages for code in message.codes}


async def tell_all(watching: Watch, inbox: Inbox) -> None:
    watching.poll()
    await inbox.next()
    while watching.readers.behind:
        watching.poll()
        await inbox.next()


async def test_what_is_spooled_and_what_is_posted_is_scrubbed_alike(cluster: Cluster, data: Path) -> None:
    secret = Maker(5).key_of("github")
    with Capture().running() as server:
        for n, transport in enumerate((Spool(data / "spool"), Http(server.url, None))):
            watching = Watch(cluster.scheduler, settings(tags={"note": secret, "n": str(n)}), transport)
            watching.start()
            watching.poll()
            watching.teardown()
        messages = [*spooled(data), *server.messages]
    tags = [message.identity.tags for message in messages if message.identity is not None]
    assert {"note": "[secret]", "n": "0"} in tags
    assert {"note": "[secret]", "n": "1"} in tags
    assert all(secret not in str(message) for message in messages)


async def test_with_scrubbing_off_all_leaves_but_the_own_token(cluster: Cluster) -> None:
    secret, token = Maker(6).key_of("github"), "0wn-token-of-this"
    inbox = Inbox()
    watch(cluster.scheduler, inbox, scrub=False, token=token, tags={"note": secret, "token": token, "x": f"a {token}"})
    first = await inbox.next()
    assert first.identity is not None
    assert first.identity.tags == {"note": secret, "token": "[secret]", "x": "a [secret]"}
