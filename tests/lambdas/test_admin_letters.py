"""`daskscope admin dead-letters` and `replay`, in both worlds."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import boto3
import pytest
from click.testing import CliRunner, Result

from daskscope.testing import CLUSTER, START_MS
from daskscope_lambdas.adapters.aws import dead_letters as sqs_dead_letters
from daskscope_lambdas.admin_command import admin
from daskscope_lambdas.env import AwsEnv, LocalEnv
from daskscope_lambdas.service.envelope import pack
from daskscope_lambdas.service.letters import Letters, Unfit, letter_id
from daskscope_lambdas.wiring import Adapters, LocalAdapters, connect
from tests.aws_world import dead_letters, make_world, point_at
from tests.emulator import Emulator
from tests.query.lake_rig import envelope

MISFIT = pack(envelope(cluster_id=12, seq=7))


@pytest.fixture
def world(env: LocalEnv, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalAdapters]:
    for name, value in env.variables().items():
        monkeypatch.setenv(name, value)
    opened = connect(env)
    yield opened
    opened.close()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(admin, [*arguments])


def put_aside(world: Adapters, *bodies: str) -> None:
    Letters(world.objects, world.clock).put([Unfit(f"{n}", body, f"reason {n}") for n, body in enumerate(bodies)])


def give_up(world: LocalAdapters, body: str) -> None:
    world.queue.send(body)
    (delivery,) = world.feed.receive(1, 60)
    world.feed.bury(delivery.receipt, "killed")


def queued(world: LocalAdapters) -> list[str]:
    return [delivery.body for delivery in world.feed.receive(100, 0)]


def test_where_nothing_died_nothing_is_said_on_stdout(world: LocalAdapters):
    listed = run("dead-letters")
    assert (listed.exit_code, listed.stdout, listed.stderr) == (0, "", "No dead letters.\n")
    assert json.loads(run("dead-letters", "--json").stdout) == []
    sent = run("replay")
    assert (sent.exit_code, sent.stdout, sent.stderr) == (0, "", "0 sent back into the queue, 0 left.\n")


def test_a_list_says_whose_they_are_and_why(world: LocalAdapters):
    put_aside(world, MISFIT)
    give_up(world, "killer")
    misfit, killer = json.loads(run("dead-letters", "--json").stdout)
    died = misfit.pop("died")
    assert died.endswith("Z")
    assert misfit == {
        "id": letter_id(MISFIT), "place": "store", "account": "acme", "cluster": 12, "uuid": CLUSTER, "seq": 7,
        "part": 0, "received": "2026-11-21T08:00:00.000Z", "reason": "reason 0",
    }  # fmt: skip
    assert START_MS == 1_795_248_000_000
    assert (killer["place"], killer["account"], killer["cluster"], killer["reason"]) == ("queue", None, None, "killed")
    table = run("dead-letters").stdout
    assert table.split()[:4] == ["id", "place", "account", "cluster"]
    assert letter_id("killer") in table


def test_a_list_has_its_limit_and_says_so(world: LocalAdapters):
    put_aside(world, "a", "b", "c")
    listed = run("dead-letters", "--limit", "2", "--json")
    assert len(json.loads(listed.stdout)) == 2
    assert listed.stderr == "There are more than 2: --limit shows them.\n"
    assert run("dead-letters", "--limit", "3").stderr == ""


def test_all_are_sent_back(world: LocalAdapters):
    put_aside(world, "a", "b")
    give_up(world, "killer")
    sent = run("replay")
    assert (sent.exit_code, sent.stdout, sent.stderr) == (0, "", "3 sent back into the queue, 0 left.\n")
    assert sorted(queued(world)) == ["a", "b", "killer"]
    assert json.loads(run("dead-letters", "--json").stdout) == []


def test_one_is_sent_back(world: LocalAdapters):
    put_aside(world, "a", "b")
    give_up(world, "killer")
    for body, left in (("killer", 2), ("b", 1)):
        sent = run("replay", "--id", letter_id(body))
        assert (sent.exit_code, sent.stderr) == (0, f"1 sent back into the queue, {left} left.\n")
    assert sorted(queued(world)) == ["b", "killer"]


def test_one_that_is_not_there_is_told(world: LocalAdapters):
    put_aside(world, "a")
    sent = run("replay", "--id", "nothing", "--id", letter_id("a"))
    assert sent.exit_code == 4
    assert sent.stderr == "1 sent back into the queue, 0 left.\nError: There is no dead letter nothing.\n"


def test_one_that_cannot_be_sent_is_told(world: LocalAdapters):
    world.objects.put_new("dead/unread/0000/1.json", b"no letter")
    put_aside(world, "a")
    sent = run("replay")
    assert sent.exit_code == 1
    assert sent.stderr.startswith("1 sent back into the queue, 1 left.\nNot sent: 0000: dead/unread/0000/1.json is no")


def test_a_store_that_fails_gets_a_sentence(world: LocalAdapters, env: LocalEnv):
    world.close()
    Path(env.data, "registry.sqlite").write_bytes(b"no database" * 100)
    listed = run("dead-letters")
    assert (listed.exit_code, listed.stdout) == (1, "")
    assert "What the server keeps could not be used" in listed.stderr


@pytest.fixture
def aws(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> AwsEnv:
    point_at(emulator, monkeypatch)
    monkeypatch.setattr(sqs_dead_letters, "_WAIT_S", 0)
    env = make_world(emulator)
    for name, value in env.variables().items():
        monkeypatch.setenv(name, value)
    return env


def test_in_aws_both_places_are_listed_and_sent_back(aws: AwsEnv):
    sqs = boto3.client("sqs")
    sqs.send_message(QueueUrl=dead_letters(aws.queue_url), MessageBody="killer")
    with closing(connect(aws)) as world:
        put_aside(world, MISFIT)
    told = json.loads(run("dead-letters", "--json").stdout)
    assert {(each["id"], each["place"], each["reason"]) for each in told} == {
        (letter_id(MISFIT), "store", "reason 0"),
        (letter_id("killer"), "queue", None),
    }
    sent = run("replay")
    assert (sent.exit_code, sent.stderr) == (0, "2 sent back into the queue, 0 left.\n")
    received = sqs.receive_message(QueueUrl=aws.queue_url, MaxNumberOfMessages=10).get("Messages", [])
    assert sorted(each.get("Body", "") for each in received) == sorted([MISFIT, "killer"])
    assert json.loads(run("dead-letters", "--json").stdout) == []


def test_in_aws_a_queue_without_a_second_one_gets_a_sentence(aws: AwsEnv):
    boto3.client("sqs").set_queue_attributes(QueueUrl=aws.queue_url, Attributes={"RedrivePolicy": ""})
    listed = run("dead-letters")
    assert (listed.exit_code, listed.stdout) == (1, "")
    assert "has no queue of dead letters" in listed.stderr
