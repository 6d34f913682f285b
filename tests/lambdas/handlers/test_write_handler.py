import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from daskscope.testing import message
from daskscope_lambdas.embedded.schedule import scheduler_event, sqs_event
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.handlers import compact, write
from daskscope_lambdas.ports import Delivery, StoreError
from daskscope_lambdas.service.envelope import Envelope, pack
from daskscope_lambdas.service.suspects import in_turn
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters, LocalAdapters
from daskscope_query import layout
from daskscope_query.lake import Lake
from tests.lambdas.handlers.deadly import KILLER


def delivery(n: int, body: str) -> Delivery:
    return Delivery(str(n), f"receipt-{n}", body, 1)


def packed(clock: FakeClock, n: int, **changes: Any) -> str:
    return pack(Envelope(account="acme", cluster_id=n, received_at=clock.now(), message=message(seq=n, **changes)))


def files(world: Adapters, table: str) -> list[str]:
    return list(world.objects.list(f"open/{table}/"))


def test_a_batch_is_one_file_a_table(world: Adapters, clock: FakeClock):
    batch = sqs_event([delivery(n, packed(clock, n)) for n in range(1, 6)])
    assert write.handler(batch, None) == {"batchItemFailures": []}
    assert len(files(world, "samples")) == len(files(world, "workers")) == 1
    write.handler(batch, None)
    assert len(files(world, "samples")) == 1, "the same batch again adds nothing"


def test_a_message_that_is_none_is_put_aside_alone(world: Adapters, clock: FakeClock, caplog: pytest.LogCaptureFixture):
    batch = [delivery(1, packed(clock, 1)), delivery(2, "poison"), delivery(3, packed(clock, 3))]
    assert write.handler(sqs_event(batch), None) == {"batchItemFailures": []}
    assert len(files(world, "samples")) == 1
    (key,) = world.objects.list("dead/unread/")
    letter = json.loads(world.objects.get(key))
    assert (letter["body"], letter["died_at"]) == ("poison", clock.now())
    assert letter["reason"].startswith("The queue holds something that is no envelope")
    assert "Message 2 was put aside as the dead letter" in caplog.text
    write.handler(sqs_event(batch), None)
    assert list(world.objects.list("dead/")) == [key], "the same batch again adds nothing"


def test_a_value_that_fits_no_column_is_put_aside_alone(world: Adapters, clock: FakeClock):
    batch = [delivery(n, packed(clock, n, uptime_us=1 << 70 if n == 3 else 5)) for n in range(1, 6)]
    assert write.handler(sqs_event(batch), None) == {"batchItemFailures": []}
    assert files(world, "samples")
    (key,) = world.objects.list("dead/account=acme/")
    letter = json.loads(world.objects.get(key))
    assert (letter["cluster_id"], letter["seq"], letter["body"]) == (3, 3, batch[2].body)
    assert "It fits no table" in letter["reason"]


def test_a_store_that_fails_fails_the_batch(world: Adapters, clock: FakeClock, monkeypatch: pytest.MonkeyPatch):
    def full(_objects: object, key: str, body: bytes) -> None:
        raise StoreError("disk full")

    monkeypatch.setattr(type(world.objects), "put_new", full)
    with pytest.raises(StoreError, match="disk full"):
        write.handler(sqs_event([delivery(1, packed(clock, 1))]), None)
    assert list(world.objects.list("dead/")) == []


def test_a_message_that_ends_the_process_takes_few_along(world: Adapters, env: LocalEnv, clock: FakeClock):
    """As an event source mapping has it: after a death the whole batch comes again, as one."""
    local = cast("LocalAdapters", world)
    bodies = [packed(clock, n) for n in range(12)]
    for body in [*bodies[:6], KILLER, *bodies[6:]]:
        local.queue.send(body)
    left: list[int] = []
    batch = local.feed.receive(1000, 60.0)
    while len(batch) > 1 and len(left) < 9:
        left.append(len(batch))
        assert _in_a_process(env, batch)
        clock.advance(61)
        batch = local.feed.receive(1000, 60.0)
    assert left[:2] == [13, 13]
    assert [delivery.body for delivery in batch] == [KILLER], left
    rows = Lake(world.lake_root, None).day("samples", account="acme", day=layout.day_of(clock.now())).records()
    assert sorted(row["seq"] for row in rows) == [*range(12)]


def _in_a_process(env: LocalEnv, batch: Sequence[Delivery]) -> bool:
    """Hands `batch` to `write`; whether that killed it. What it answered is not looked at then, as in Lambda."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.lambdas.handlers.deadly"],
        input=json.dumps(sqs_event(batch)),
        env=os.environ | env.variables(),
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def test_what_comes_for_the_first_time_is_one_group_and_before_all_else():
    batch = [Delivery(str(n), f"r{n}", "body", 1 + n % 3) for n in range(300)]
    groups = in_turn(batch)
    assert [each.receive_count for each in groups[0]] == [1] * 100
    assert sorted(each.id for group in groups for each in group) == sorted(each.id for each in batch)
    assert len(groups) == 13
    assert in_turn(batch[::3]) == [batch[::3]]
    assert in_turn([]) == []


def test_who_keeps_bad_company_is_in_another_order_each_time():
    tries = [in_turn([Delivery(str(n), "", "", count) for n in range(100)]) for count in range(2, 11)]
    before = [{each.id for group in groups[: _of("50", groups)] for each in group} for groups in tries]
    assert len(set[str]().union(*before)) > 97


def _of(id: str, groups: Sequence[Sequence[Delivery]]) -> int:
    (found,) = [n for n, group in enumerate(groups) if id in {each.id for each in group}]
    return found


def test_a_part_of_compact_that_fails_keeps_no_other_from_its_turn(
    world: Adapters,
    clock: FakeClock,
    post: Callable[..., dict[str, Any]],
    drain: Callable[[], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    post(message())
    drain()
    clock.advance(2 * 86_400)

    def failing(part: str) -> Callable[[object], object]:
        def run(_self: object) -> object:
            raise StoreError(f"{part} cannot")

        return run

    monkeypatch.setattr(compact.Gatherer, "run", failing("gather"))
    monkeypatch.setattr(compact.Deleter, "run", failing("delete"))
    with pytest.raises(StoreError, match="gather cannot"):
        compact.handler(scheduler_event(), None)
    assert "delete cannot" in caplog.text
    boundary = world.seals.boundary()
    assert boundary is not None
    assert world.objects.get(layout.tidied_key(boundary)) == b""


def test_compact_seals_the_day_that_is_over(
    world: Adapters, clock: FakeClock, post: Callable[..., dict[str, Any]], drain: Callable[[], dict[str, Any]]
):
    post(message())
    drain()
    clock.advance(2 * 86_400)
    compact.handler(scheduler_event(), None)
    assert world.seals.boundary() is not None
    assert list(world.objects.list("sealed/samples/account=acme/"))
