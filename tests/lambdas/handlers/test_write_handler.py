import json
from collections.abc import Callable
from typing import Any

import pytest

from daskscope.testing import message
from daskscope_lambdas.embedded.schedule import scheduler_event, sqs_event
from daskscope_lambdas.handlers import compact, write
from daskscope_lambdas.ports import Delivery, StoreError
from daskscope_lambdas.service.envelope import Envelope, pack
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters


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


def test_compact_seals_the_day_that_is_over(
    world: Adapters, clock: FakeClock, post: Callable[..., dict[str, Any]], drain: Callable[[], dict[str, Any]]
):
    post(message())
    drain()
    clock.advance(2 * 86_400)
    compact.handler(scheduler_event(), None)
    assert world.seals.boundary() is not None
    assert list(world.objects.list("sealed/samples/account=acme/"))
