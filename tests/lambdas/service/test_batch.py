import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from daskscope import wire
from daskscope.testing import groups, message, profile, workers
from daskscope_lambdas.ports import StoreError
from daskscope_lambdas.service import batch
from daskscope_lambdas.service.batch import write_batch
from daskscope_lambdas.service.envelope import Envelope, pack
from daskscope_lambdas.service.write import Writer
from tests.query.lake_rig import LakeRig, envelope


def bodies(*envelopes: Envelope) -> list[tuple[str, str]]:
    """As the queue hands them over, numbered."""
    return [(str(n), pack(each)) for n, each in enumerate(envelopes)]


class Slices(Writer):
    """Keeps nothing, remembers how many envelopes came together."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def write_what_fits(self, envelopes: Sequence[Envelope]) -> list[Envelope]:
        self.sizes.append(len(envelopes))
        return []


def sizes(*envelopes: Envelope) -> list[int]:
    writer = Slices()
    assert write_batch(writer, bodies(*envelopes)) == []
    return writer.sizes


def test_a_full_batch_of_usual_messages_is_one_file_a_table(rig: LakeRig) -> None:
    """1,000 of clusters with 100 workers: SQS hands over no more."""
    posted = workers([f"tcp://10.0.0.{n}:40001" for n in range(100)])
    writer = Writer(rig.objects, rig.seals)
    assert write_batch(writer, bodies(*(envelope(seq=n, workers=posted) for n in range(1, 1_001)))) == []
    assert len(rig.listed("open/workers/")) == len(rig.listed("open/samples/")) == 1


@pytest.mark.parametrize(
    ("limit", "value", "expected"),
    [("SLICE_BYTES", 1, [1, 1, 1]), ("SLICE_ENTRIES", 4, [2, 1]), ("SLICE_ENTRIES", 1, [1, 1, 1])],
)
def test_what_is_over_a_slice_goes_into_the_next(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, expected: list[int]
) -> None:
    monkeypatch.setattr(batch, limit, value)
    assert sizes(*(envelope(seq=n) for n in range(3))) == expected  # each of two workers


def test_a_small_body_that_unpacks_to_a_lot_is_a_slice_alone() -> None:
    large = [wire.Computation(no=0, start_ms=0, code=[[]] * 300_000)]
    many = [envelope(seq=1), envelope(seq=2, computations=large), envelope(seq=3, computations=large), envelope(seq=4)]
    assert sizes(*many) == [1, 1, 1, 1]


def test_a_text_that_rows_repeat_counts_as_often() -> None:
    frame = "f" * (batch.SLICE_BYTES // 300)
    wide = [profile(frames=[frame], prefix=[""] * 400, stack=[[0]] * 400, count=[1] * 400)]
    assert sizes(*(envelope(seq=n, profiles=wide) for n in range(3))) == [1, 1, 1]


def test_memory_is_the_same_however_many_come(rig: LakeRig) -> None:
    """Bodies of 1 KB that hold 5,000 groups each."""
    hollow = groups(*({"no": n, "name": "", "states": {}, "action_us": {}, "types": []} for n in range(5_000)))
    body = pack(Envelope(account="acme", cluster_id=1, received_at=1.0, message=message(groups=hollow)))

    def peak_bytes(n: int) -> int:
        tracemalloc.start()
        try:
            write_batch(Writer(rig.objects, rig.seals), ((str(number), body) for number in range(n)))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "SLICE_ENTRIES", 10_000)
        assert peak_bytes(16) < 1.5 * peak_bytes(4)


def test_misfits_and_unreadable_ones_fail_alone_in_whatever_slice(
    rig: LakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "SLICE_ENTRIES", 4)
    some = bodies(*(envelope(seq=n, uptime_us=1 << 70 if n == 4 else 5) for n in range(6)))
    some[1] = ("1", "poison")
    assert sorted(write_batch(Writer(rig.objects, rig.seals), some)) == ["1", "4"]
    assert sorted(row["seq"] for row in rig.records("samples", cluster=envelope().message.cluster)) == [0, 2, 3, 5]


def test_a_batch_delivered_again_after_a_slice_adds_nothing_twice(
    rig: LakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "SLICE_ENTRIES", 4)
    some = bodies(*(envelope(seq=n) for n in range(4)))
    writer = Writer(rig.objects, rig.seals)

    def cut_short() -> Iterator[tuple[str, str]]:
        yield from some[:3]
        raise StoreError("dead")

    with pytest.raises(StoreError, match="dead"):
        write_batch(writer, cut_short())
    first = {key: rig.objects.get(key) for key in rig.listed()}
    assert first
    assert write_batch(writer, some) == []
    again: dict[str, Any] = {key: rig.objects.get(key) for key in rig.listed()}
    assert first.items() <= again.items()
    assert len(rig.listed("open/samples/")) == 2
