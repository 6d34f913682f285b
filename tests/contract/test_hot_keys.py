"""No key of the registry is written by all clusters of an account: counted at the requests, not believed."""

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from daskscope import wire
from daskscope.compression import compress
from daskscope.testing import message
from daskscope_lambdas.adapters import aws
from daskscope_lambdas.env import AwsEnv
from daskscope_lambdas.registry import KEY, LISTED_AT, LISTED_IN, LISTING, LIVES_IN, LIVING
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.idle import IdlePolicy
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.testing import FakeClock
from tests.aws_world import make_world, point_at
from tests.emulator import Emulator

CLUSTERS = 200
POSTS = 3
READS = {"GetItem", "BatchGetItem", "Query", "Scan"}


class Ledger:
    """Every write that a DynamoDB client asks for: of items by their key, of indexes by their partition."""

    def __init__(self, client: Any) -> None:
        self.items: Counter[str] = Counter()
        self.indexes: Counter[tuple[str, str]] = Counter()
        self._standing: dict[tuple[str, str], tuple[str, ...]] = {}
        client.meta.events.register("provide-client-params.dynamodb.*", self._note)

    def _note(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if model.name == "PutItem":
            self._put(params)
        elif model.name == "UpdateItem":
            self._update(params)
        elif model.name == "TransactWriteItems":
            for action in params["TransactItems"]:
                assert list(action) == ["Put"]
                self._put(action["Put"])
        else:
            assert model.name in READS

    def _put(self, put: dict[str, Any]) -> None:
        self._count(put["Item"][KEY]["S"], {name: value.get("S") for name, value in put["Item"].items()})

    def _update(self, update: dict[str, Any]) -> None:
        names, values = update["ExpressionAttributeNames"], update["ExpressionAttributeValues"]
        _, _, gone = update["UpdateExpression"].partition("REMOVE")
        changes: dict[str, str | None] = dict.fromkeys(names[name] for name in re.findall(r"#\w+", gone))
        for name, value in re.findall(r"(#\w+) = (:\w+)", update["UpdateExpression"]):
            changes[names[name]] = values[value].get("S")
        self._count(update["Key"][KEY]["S"], changes)

    def _count(self, key: str, changes: dict[str, str | None]) -> None:
        """As DynamoDB does: an index is written where what stands in it changes."""
        self.items[key] += 1
        for index, attributes in ((LISTING, (LISTED_IN, LISTED_AT)), (LIVING, (LIVES_IN,))):
            before = self._standing.get((index, key), ("",) * len(attributes))
            after = tuple(changes.get(name, old) or "" for name, old in zip(attributes, before, strict=True))
            if after != before:
                self.indexes[index, after[0] or before[0]] += 1
                self._standing[index, key] = after


@pytest.fixture
def env(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> AwsEnv:
    point_at(emulator, monkeypatch)
    return make_world(emulator)


@pytest.fixture
def clients(env: AwsEnv) -> Iterator[aws.Clients]:
    made = aws.Clients(env.endpoint_url)
    yield made
    made.close()


def test_a_post_writes_its_clusters_item_and_nothing_that_others_write(
    env: AwsEnv, clients: aws.Clients, clock: FakeClock
) -> None:
    ledger = Ledger(clients.dynamodb())
    registry = aws.DynamoClusters(clients.dynamodb, env.table)
    codes = CodeKeeper(aws.S3Objects(clients.s3, env.bucket), aws.SsmVault(clients.ssm, env.keys))
    idle = IdlePolicy(aws.DynamoPolicies(clients.dynamodb, env.table), clock)
    ingest = Ingest(aws.SqsQueue(clients.sqs, env.queue_url), registry, codes, idle, clock)
    uuids = [f"{n:032x}" for n in range(CLUSTERS)]

    def posts(uuid: str) -> list[wire.Reply]:
        told = [message(cluster=uuid, seq=seq, uptime_us=seq) for seq in range(POSTS)]
        return [ingest.take("acme", *compress(wire.encode(each))) for each in told]

    with ThreadPoolExecutor(16) as pool:
        numbers = [{reply.id for reply in replies} for replies in pool.map(posts, uuids)]
    assert sorted(map(sorted, numbers)) == [[n] for n in range(1, CLUSTERS + 1)]

    own = {f"cluster/{uuid}": POSTS + 1 for uuid in uuids}  # and its enrolment
    numbered = {f"number/acme/{n}": 1 for n in range(1, CLUSTERS + 1)}
    assert ledger.items == own | numbered | {"account/acme": CLUSTERS}
    # That the account is there is told once, with its first number.
    told = {(LISTING, "clusters/acme"): CLUSTERS, (LISTING, "accounts"): 1}
    assert ledger.indexes == told | {(LIVING, "all"): CLUSTERS}

    last = message(cluster=uuids[0], seq=POSTS, phase="closed", reason="user")
    ingest.take("acme", *compress(wire.encode(last)))
    assert ledger.indexes == told | {(LIVING, "all"): CLUSTERS + 1}
    assert clients.dynamodb().scan(TableName=env.table, Select="COUNT")["Count"] == 2 * CLUSTERS + 1
