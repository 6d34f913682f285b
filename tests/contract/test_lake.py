"""`lake_root` is where `objects` keeps: what services put there, the lake finds."""

from datetime import timedelta

import pytest

from daskscope.testing import CLUSTER, event
from daskscope_lambdas.service.compact import GRACE_S, LINGER_S, Compactor
from daskscope_lambdas.service.gather import FAN_IN, Gatherer
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters
from daskscope_query import layout
from daskscope_query.lake import Answer, Lake, MovedError
from tests.query.lake_rig import DAY, DAY_S, START, envelope

TOMORROW = DAY + timedelta(1)


def write(world: Adapters, seq: int, received_at: float = START) -> None:
    told = envelope(seq=seq, received_at=received_at, events=[event(no=seq)])
    Writer(world.objects, world.seals).write([told], f"batch-{seq}")


def ask(world: Adapters) -> Answer:
    lake = Lake(world.lake_root, world.seals.boundary())
    return lake.ask("events", account="acme", days=(DAY, DAY), cluster=CLUSTER, limit=100, offset=0)


def test_an_empty_lake_has_no_rows(world: Adapters) -> None:
    answer = ask(world)
    assert (answer.rows.num_rows, answer.skipped, answer.as_of) == (0, [], None)


def test_rows_are_found_while_their_day_is_open_gathered_and_sealed(world: Adapters, clock: FakeClock) -> None:
    for seq in range(FAN_IN):
        write(world, seq)
    first = ask(world)
    assert first.rows.num_rows == FAN_IN
    assert Gatherer(world.objects, world.seals, clock, world.lake_root).run() > FAN_IN
    assert len(list(world.objects.list(layout.open_prefix("events", DAY)))) == 1
    assert ask(world).rows.equals(first.rows)
    clock.advance(DAY_S + GRACE_S)
    compactor = Compactor(world.objects, world.seals, clock, world.lake_root)
    assert compactor.run() == [DAY]
    assert ask(world).rows.equals(first.rows)
    clock.advance(LINGER_S)
    assert compactor.run() == []
    assert list(world.objects.list("open/")) == []
    assert ask(world).rows.equals(first.rows)


def test_a_row_that_came_after_its_day_was_sealed_is_found(world: Adapters, clock: FakeClock) -> None:
    write(world, 0)
    clock.advance(DAY_S + GRACE_S)
    Compactor(world.objects, world.seals, clock, world.lake_root).run()
    write(world, 1)
    assert [layout.day_in(key) for key in world.objects.list("open/events/")] == [DAY, TOMORROW]
    assert ask(world).rows.num_rows == 2


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_answered(world: Adapters) -> None:
    write(world, 0)
    spoilt = layout.open_key("events", DAY, "spoilt")
    world.objects.put_new(spoilt, b"no Parquet at all")
    answer = ask(world)
    assert (answer.rows.num_rows, answer.skipped) == (1, [spoilt])


def test_a_file_that_went_since_it_was_listed_is_told(world: Adapters) -> None:
    write(world, 0)
    gone = layout.open_key("events", DAY, "gone")
    lake = Lake(world.lake_root, None, open_files=[*world.objects.list("open/"), gone])
    with pytest.raises(MovedError, match="gone"):
        lake.ask("events", account="acme", days=(DAY, DAY), cluster=CLUSTER, limit=100, offset=0)
