from datetime import timedelta

import pytest

from daskscope.testing import CLUSTER, event
from daskscope_lambdas.ports import StoreError
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.service.gather import FAN_IN, Gatherer
from daskscope_lambdas.testing import FakeClock
from daskscope_query import layout
from tests.query.lake_rig import DAY, DAY_S, START, LakeRig, envelope


def gatherer(rig: LakeRig, clock: FakeClock) -> Gatherer:
    return Gatherer(rig.objects, rig.seals, clock, str(rig.root))


def fill(rig: LakeRig, batches: int) -> None:
    for n in range(batches):
        rig.write(envelope(seq=n, events=[event(no=n)]), envelope("globex", seq=n))


def test_a_long_day_stays_a_few_files_and_answers_the_same(rig: LakeRig, clock: FakeClock) -> None:
    fill(rig, FAN_IN * 2 + 3)
    before = rig.records("events", cluster=CLUSTER)
    assert gatherer(rig, clock).run() == FAN_IN * 2 * 3
    assert len(rig.listed("open/events/")) == 5
    assert rig.records("events", cluster=CLUSTER) == before
    assert gatherer(rig, clock).run() == 0
    clock.at = START + DAY_S
    Compactor(rig.objects, rig.seals, clock, str(rig.root)).run()
    assert rig.seals.boundary() == DAY
    assert rig.records("events", cluster=CLUSTER) == before


def test_gathered_files_are_gathered_in_turn(rig: LakeRig, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope_lambdas.service.gather.FAN_IN", 2)
    fill(rig, 8)
    while gatherer(rig, clock).run():
        pass
    assert len(rig.listed("open/events/")) == 1
    assert len(rig.records("events", cluster=CLUSTER)) == 8


def test_dying_before_the_small_files_are_gone_doubles_nothing(
    rig: LakeRig, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(rig, FAN_IN)
    before = rig.records("events", cluster=CLUSTER)

    def dead(key: str) -> None:
        raise StoreError("dead")

    with monkeypatch.context() as patched:
        patched.setattr(rig.objects, "delete", dead)
        with pytest.raises(StoreError, match="dead"):
            gatherer(rig, clock).run()
    for table in ("samples", "events"):
        assert len(rig.listed(f"open/{table}/")) >= FAN_IN
    assert rig.records("events", cluster=CLUSTER) == before
    gatherer(rig, clock).run()
    assert len(rig.listed("open/events/")) == 1
    assert rig.records("events", cluster=CLUSTER) == before


def test_a_corrupt_file_stays_and_a_day_that_is_over_is_left_alone(rig: LakeRig, clock: FakeClock) -> None:
    fill(rig, FAN_IN)
    bad = layout.open_key("events", DAY, "bad")
    rig.objects.put_new(bad, b"garbage")
    gatherer(rig, clock).run()
    assert bad in rig.listed("open/events/")
    assert len(rig.records("events", cluster=CLUSTER)) == FAN_IN
    later = [f"open/events/day={DAY + timedelta(1)}/{n}.parquet" for n in range(FAN_IN)]
    for key in later:
        rig.objects.put_new(key, rig.objects.get(rig.listed("open/samples/")[0]))
    assert gatherer(rig, clock).run() == 0
    assert set(later) <= set(rig.listed("open/events/"))
