"""What only the deployed stack can show: its queue, its clock, its functions' settings, its pages over HTTP."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest

from daskscope import wire
from daskscope.testing import START_MS, event, exception, message
from daskscope_lambdas.service.envelope import Envelope, pack
from daskscope_lambdas.service.letters import Letters, letter_id
from daskscope_lambdas.service.replay import replay
from daskscope_lambdas.testing import seal
from daskscope_query import layout
from tests.deployed import Deployed
from tests.end_to_end.house import eventually
from tests.end_to_end.places import Place, in_stack

pytestmark = pytest.mark.timeout(600)

DAY_S = 86_400


@pytest.fixture
def place(deployed: Deployed) -> Iterator[Place]:
    with in_stack(deployed, f"of-{secrets.token_hex(4)}") as found:
        yield found


def cluster(place: Place, since: float | None = None) -> tuple[str, int]:
    """A cluster that has just reported, and is known for as long: its UUID and its number."""
    uuid = secrets.token_hex(16)
    if since is not None:
        with place.registry() as world:
            world.clusters.enrol(place.account, uuid, since, since)
    return uuid, place.post(message(cluster=uuid, next_s=3600.0)).raise_for_status().json()["id"]


def packed(place: Place, number: int, received_at: float, posted: wire.Message) -> str:
    """As ingest puts it into the queue."""
    return pack(Envelope(account=place.account, cluster_id=number, received_at=received_at, message=posted))


def items(place: Place, number: int, what: str) -> list[dict[str, Any]]:
    return place.get(f"/api/v1/{place.account}/clusters/{number}/{what}").raise_for_status().json()["items"]


def invoke(deployed: Deployed, module: str, payload: dict[str, Any]) -> Any:
    """The function's answer."""
    answer = deployed.client("lambda").invoke(FunctionName=name(deployed, module), Payload=json.dumps(payload))
    body = answer["Payload"].read()
    assert "FunctionError" not in answer, body
    return json.loads(body)


def name(deployed: Deployed, module: str) -> str:
    (found,) = (f["FunctionName"] for f in functions(deployed) if f["Handler"].endswith(f".{module}.handler"))
    return found


def functions(deployed: Deployed) -> Sequence[dict[str, Any]]:
    """Of this stack, for another test's may stand beside it: those that are told its names, and nothing else."""
    listed = deployed.client("lambda").list_functions()["Functions"]
    return [f for f in listed if f.get("Environment", {}).get("Variables") == deployed.env.variables()]


def scheduled() -> dict[str, Any]:
    """As EventBridge Scheduler calls a function that it was given no input for."""
    return {
        "version": "0", "id": "a", "detail-type": "Scheduled Event", "source": "aws.scheduler", "account": "0",
        "time": "2026-11-21T08:00:00Z", "region": "eu-west-1", "resources": [], "detail": "{}",
    }  # fmt: skip


def test_a_poisoned_message_is_put_aside_and_sent_back_and_the_rest_of_its_batch_is_written(
    deployed: Deployed, place: Place
) -> None:
    uuid, number = cluster(place)
    good = [
        packed(
            place, number, time.time(), message(cluster=uuid, seq=seq, exceptions=[exception(no=seq, text=f"{seq}")])
        )
        for seq in (1, 2, 3)
    ]
    poison = f"no envelope: {secrets.token_hex(8)}"
    bodies = [good[0], poison, *good[1:]]
    sqs = deployed.client("sqs")
    entries = [{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies)]
    assert not sqs.send_message_batch(QueueUrl=deployed.env.queue_url, Entries=entries).get("Failed")
    eventually(
        lambda: {row["text"] for row in items(place, number, "exceptions")}, lambda told: told == {"1", "2", "3"}
    )
    with deployed.registry() as world:
        letters = Letters(world.objects, world.clock)

        def put_aside() -> list[str]:
            return [key for name, keys in letters.listed() if name == letter_id(poison) for key in keys]

        (first,) = eventually(put_aside, bool)
        told = replay(letters, world.dead_letters, world.queue, [letter_id(poison)])
        assert (told.sent, told.problems, told.unknown) == (1, [], set())
        (again,) = eventually(put_aside, bool, within_s=120)
        assert again != first, "another message brought it"


def test_compact_gathers_the_open_day_and_seals_those_that_are_over(deployed: Deployed, place: Place) -> None:
    now = time.time()
    then = now - 3 * DAY_S
    uuid, number = cluster(place, since=then)
    # Batches of one message each, as a quiet fleet makes them.
    for seq in range(1, 18):
        posted = message(cluster=uuid, seq=seq, events=[event(no=seq, at_ms=START_MS + seq)])
        write(deployed, packed(place, number, now, posted))
    write(deployed, packed(place, number, then, message(cluster=uuid, seq=18, events=[event(no=18)])))
    told = eventually(lambda: items(place, number, "events"), lambda told: len(told) == 18)

    with deployed.registry() as world:
        day, today = layout.day_of(then), layout.day_of(now)
        assert list(world.objects.list(layout.open_prefix("events", day)))
        assert invoke(deployed, "compact", scheduled()) is None
        boundary = world.seals.boundary()
        assert boundary is not None
        assert day <= boundary < today
        assert list(world.objects.list(layout.sealed_prefix("events", place.account, day)))
        assert any("/gathered-" in key for key in world.objects.list(layout.open_prefix("events", today)))
    assert items(place, number, "events") == told
    assert invoke(deployed, "compact", scheduled()) is None, "once more changes nothing"
    assert items(place, number, "events") == told


def write(deployed: Deployed, body: str) -> None:
    """A batch of one, as SQS hands it over."""
    record = {
        "messageId": secrets.token_hex(8), "receiptHandle": "a", "body": body,
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {}, "md5OfBody": "", "eventSource": "aws:sqs", "eventSourceARN": "a", "awsRegion": "a",
    }  # fmt: skip
    assert invoke(deployed, "write", {"Records": [record]}) == {"batchItemFailures": []}


def test_sweep_sees_the_clusters_that_live(deployed: Deployed, place: Place) -> None:
    cluster(place)
    seen = invoke(deployed, "sweep", scheduled())
    assert seen["living"] >= 1


def test_a_browser_logs_in_and_reads(deployed: Deployed, place: Place) -> None:
    _, number = cluster(place)
    with httpx.Client(trust_env=False, timeout=60) as browser:
        refused = browser.get(f"{place.url}/{place.account}/analytics")
        assert (refused.status_code, refused.headers["content-type"]) == (401, "text/html; charset=utf-8")
        assert 'name="token"' in refused.text
        login = browser.post(f"{place.url}/login", data={"token": place.token})
        assert (login.status_code, login.headers["location"]) == (303, f"{place.account}/analytics")
        kept, *how = login.headers["set-cookie"].split("; ")
        assert kept.startswith("__Host-daskscope=")
        assert {"Path=/", "HttpOnly", "Secure", "SameSite=Lax"} <= set(how)
        # By hand, for a secure cookie does not travel over the emulator's http.
        pages = [
            browser.get(f"{place.url}/{place.account}/analytics{path}", headers={"Cookie": kept})
            for path in ("", f"/clusters/{number}")
        ]
        assert [(page.status_code, page.headers["content-type"]) for page in pages] == [
            (200, "text/html; charset=utf-8")
        ] * 2
        assert all("demo" in page.text for page in pages)
        style = browser.get(f"{place.url}/static/style.css")
        assert (style.status_code, style.headers["content-type"].partition(";")[0]) == (200, "text/css")
        assert browser.get(f"{place.url}/healthz").text == "ok\n"


def test_functions_are_told_names_and_no_secret(deployed: Deployed) -> None:
    assert {f["Handler"].split(".")[-2] for f in functions(deployed)} == {"ingest", "write", "api", "sweep", "compact"}
    # A key is in the Parameter Store alone, and encrypted there.
    with deployed.registry() as world:
        seal(world.vault, "of-nobody", b"code", "context")
    kept = deployed.client("ssm").get_parameter(Name=f"{deployed.env.keys}/of-nobody")["Parameter"]
    assert kept["Type"] == "SecureString"


def test_the_first_tokens_of_the_deploy_work(deployed: Deployed) -> None:
    def asked(token: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.get(f"{deployed.url}/api/v1/whoami", headers=headers, trust_env=False, timeout=60).json()

    admin, reporting = asked(deployed.told["token"]), asked(deployed.told["ingest_token"])
    assert (admin["account"], admin["scopes"]) == ("main", ["admin", "control", "ingest", "read", "report"])
    assert (reporting["account"], reporting["scopes"]) == ("main", ["ingest"])
