import base64
import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pytest
import zstandard

from daskscope import wire
from daskscope.testing import CLUSTER, START_MS, groups, message, profile, workers
from daskscope_lambdas.adapters.local import DiskObjects
from daskscope_lambdas.ports import StoreError
from daskscope_lambdas.service import batch, write
from daskscope_lambdas.service.batch import write_batch
from daskscope_lambdas.service.envelope import Envelope, pack
from daskscope_lambdas.service.letters import Letter, Letters, letter_id
from daskscope_lambdas.service.write import Misfit, Writer
from daskscope_lambdas.testing import FakeClock
from tests.query.lake_rig import DAY, LakeRig, envelope


@pytest.fixture
def letters(rig: LakeRig, clock: FakeClock) -> Letters:
    return Letters(rig.objects, clock)


def bodies(*envelopes: Envelope) -> list[tuple[str, str]]:
    """As the queue hands them over, numbered."""
    return [(str(n), pack(each)) for n, each in enumerate(envelopes)]


class Slices(Writer):
    """Keeps nothing, remembers how many envelopes came together."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def write_what_fits(self, envelopes: Sequence[Envelope]) -> list[Misfit]:
        self.sizes.append(len(envelopes))
        return []


def sizes(letters: Letters, *envelopes: Envelope) -> list[int]:
    writer = Slices()
    assert write_batch(writer, letters, bodies(*envelopes)) == []
    return writer.sizes


def put_aside(letters: Letters) -> list[Letter]:
    return [letter for _, keys in letters.listed() if (letter := letters.read(keys))]


def seqs(rig: LakeRig) -> list[int]:
    return sorted(row["seq"] for row in rig.lake().day("samples", account="acme", day=DAY).records())


def test_a_full_batch_of_usual_messages_is_one_file_a_table(rig: LakeRig, letters: Letters) -> None:
    """1,000 of clusters with 100 workers: SQS hands over no more."""
    posted = workers([f"tcp://10.0.0.{n}:40001" for n in range(100)])
    writer = Writer(rig.objects, rig.seals)
    assert write_batch(writer, letters, bodies(*(envelope(seq=n, workers=posted) for n in range(1, 1_001)))) == []
    assert len(rig.listed("open/workers/")) == len(rig.listed("open/samples/")) == 1


@pytest.mark.parametrize(
    ("limit", "value", "expected"),
    [("SLICE_BYTES", 1, [1, 1, 1]), ("SLICE_ENTRIES", 4, [2, 1]), ("SLICE_ENTRIES", 1, [1, 1, 1])],
)
def test_what_is_over_a_slice_goes_into_the_next(
    monkeypatch: pytest.MonkeyPatch, letters: Letters, limit: str, value: int, expected: list[int]
) -> None:
    monkeypatch.setattr(batch, limit, value)
    assert sizes(letters, *(envelope(seq=n) for n in range(3))) == expected  # each of two workers


def test_a_small_body_that_unpacks_to_a_lot_is_a_slice_alone(letters: Letters) -> None:
    large = [wire.Computation(no=0, start_ms=0, code=[[]] * 300_000)]
    many = [envelope(seq=1), envelope(seq=2, computations=large), envelope(seq=3, computations=large), envelope(seq=4)]
    assert sizes(letters, *many) == [1, 1, 1, 1]


def test_a_text_that_rows_repeat_counts_as_often(letters: Letters) -> None:
    frame = "f" * (batch.SLICE_BYTES // 300)
    wide = [profile(frames=[frame], prefix=[""] * 400, stack=[[0]] * 400, count=[1] * 400)]
    assert sizes(letters, *(envelope(seq=n, profiles=wide) for n in range(3))) == [1, 1, 1]


def test_memory_is_the_same_however_many_come(rig: LakeRig, letters: Letters) -> None:
    """Bodies of 1 KB that hold 5,000 groups each."""
    hollow = groups(*({"no": n, "name": "", "states": {}, "action_us": {}, "types": []} for n in range(5_000)))
    body = pack(Envelope(account="acme", cluster_id=1, received_at=1.0, message=message(groups=hollow)))

    def peak_bytes(n: int) -> int:
        tracemalloc.start()
        try:
            write_batch(Writer(rig.objects, rig.seals), letters, ((str(number), body) for number in range(n)))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "SLICE_ENTRIES", 10_000)
        assert peak_bytes(16) < 1.5 * peak_bytes(4)


def test_misfits_and_unreadable_ones_are_put_aside_alone_in_whatever_slice(
    rig: LakeRig, letters: Letters, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "SLICE_ENTRIES", 4)
    some = bodies(*(envelope(seq=n, uptime_us=1 << 70 if n == 4 else 5) for n in range(6)))
    some[1] = ("1", "poison")
    assert write_batch(Writer(rig.objects, rig.seals), letters, some) == []
    assert seqs(rig) == [0, 2, 3, 5]
    misfit, unread = put_aside(letters)
    assert (misfit.body, misfit.died_at) == (some[4][1], clock.now())
    assert "It fits no table: Python int too large" in misfit.reason
    assert unread.body == "poison"
    assert "no envelope" in unread.reason
    assert [key.split("/")[1:3] for key in rig.listed("dead/")] == [
        ["account=acme", f"cluster={CLUSTER}"],
        ["unread", letter_id("poison")],
    ]


def test_one_poison_of_a_hundred_takes_none_along(rig: LakeRig, letters: Letters) -> None:
    some = bodies(*(envelope(seq=n, made_at_ms=-1 if n == 61 else START_MS) for n in range(100)))
    assert write_batch(Writer(rig.objects, rig.seals), letters, some) == []
    assert seqs(rig) == [n for n in range(100) if n != 61]
    assert [letter.body for letter in put_aside(letters)] == [some[61][1]]


@pytest.mark.parametrize(
    "nested", ['{"account":' + "[" * 50_000, '{"message":{"x":' + "[" * 50_000], ids=["known", "new"]
)
def test_what_is_too_deep_to_be_read_is_put_aside(rig: LakeRig, letters: Letters, nested: str) -> None:
    body = base64.b64encode(zstandard.compress(nested.encode())).decode()
    some = [*bodies(envelope(seq=1)), ("deep", body)]
    assert write_batch(Writer(rig.objects, rig.seals), letters, some) == []
    assert seqs(rig) == [1]
    assert [letter.body for letter in put_aside(letters)] == [body]


def test_an_account_that_names_no_folder_is_put_aside(rig: LakeRig, letters: Letters) -> None:
    """What gets into an open day is sealed under it: there it would stop everybody's day."""
    odd = bodies(envelope(account="../acme", seq=1), envelope(seq=2))
    assert write_batch(Writer(rig.objects, rig.seals), letters, odd) == []
    assert seqs(rig) == [2]
    assert [key.split("/")[1] for key in rig.listed("dead/")] == ["unread"]


def test_an_envelope_of_another_release_is_read(rig: LakeRig, letters: Letters) -> None:
    """What is new in it is left out, what is missing has its default: a queue outlives an upgrade, and a way back."""
    told = msgspec.to_builtins(envelope(seq=1))
    told["message"]["totals"]["new"] = told["message"]["new"] = told["new"] = {"a": [1, "b"]}
    older = msgspec.to_builtins(envelope(seq=2))
    del older["skew_ms"]
    for name in ("started_at_ms", "part", "halved", "merged", "sums"):
        del older["message"][name]
    packed = [base64.b64encode(zstandard.compress(msgspec.json.encode(each))).decode() for each in (told, older)]
    assert write_batch(Writer(rig.objects, rig.seals), letters, list(enumerate_as_text(packed))) == []
    assert seqs(rig) == [1, 2]
    assert put_aside(letters) == []


def enumerate_as_text(packed: Sequence[str]) -> list[tuple[str, str]]:
    return [(str(n), body) for n, body in enumerate(packed)]


class Broken(Writer):
    """One that trips over a message, as a mistake of ours does."""

    def __init__(self, rig: LakeRig, error: Exception, patch: pytest.MonkeyPatch) -> None:
        super().__init__(rig.objects, rig.seals)
        real = write.to_rows

        def to_rows(envelopes: Sequence[Envelope]) -> Any:
            if any(each.message.seq == 3 for each in envelopes):
                raise error
            return real(envelopes)

        patch.setattr(write, "to_rows", to_rows)


def test_our_own_mistake_leaves_the_message_in_the_queue_and_the_rest_is_kept(
    rig: LakeRig, letters: Letters, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Broken(rig, KeyError("oops"), monkeypatch)
    assert write_batch(broken, letters, bodies(*(envelope(seq=n) for n in range(6)))) == ["3"]
    assert seqs(rig) == [0, 1, 2, 4, 5]
    assert put_aside(letters) == []
    assert "KeyError: 'oops'" in caplog.text


@pytest.mark.parametrize("error", [MemoryError(), pa.ArrowMemoryError("malloc failed"), OSError(24, "Too many files")])
def test_trouble_of_this_machine_is_no_fault_of_a_message(
    rig: LakeRig, letters: Letters, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with pytest.raises(type(error)):
        write_batch(Broken(rig, error, monkeypatch), letters, bodies(*(envelope(seq=n) for n in range(6))))
    assert put_aside(letters) == []


@pytest.mark.parametrize("error", [StoreError("no answer"), ValueError("a key that is none"), OSError(5, "I/O")])
@pytest.mark.parametrize("fails", ["put_new", "boundary"])
def test_whatever_the_store_raises_puts_nothing_aside(
    rig: LakeRig, letters: Letters, monkeypatch: pytest.MonkeyPatch, error: Exception, fails: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(*((type(rig.objects), "put_new", fail) if fails == "put_new" else (rig.seals, fails, fail)))
    with pytest.raises(type(error)):
        write_batch(Writer(rig.objects, rig.seals), letters, bodies(envelope(seq=1), envelope(seq=2)))
    monkeypatch.undo()
    assert rig.listed() == []


def test_a_letter_that_the_store_does_not_take_stays_in_the_queue(
    rig: LakeRig, letters: Letters, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put_new = DiskObjects.put_new

    def fail(objects: DiskObjects, key: str, body: bytes) -> None:
        if key.startswith("dead/"):
            raise StoreError("no room")
        put_new(objects, key, body)

    some = [*bodies(envelope(seq=1)), ("bad", "poison")]
    writer = Writer(rig.objects, rig.seals)
    with monkeypatch.context() as patch:
        patch.setattr(DiskObjects, "put_new", fail)
        assert write_batch(writer, letters, some) == ["bad"]
    assert "Message bad is not fit for the lake and stays in the queue: no room" in caplog.text
    assert seqs(rig) == [1]
    for _ in range(2):
        assert write_batch(writer, letters, some) == []
        assert [letter.body for letter in put_aside(letters)] == ["poison"]


def test_a_batch_delivered_again_after_a_slice_adds_nothing_twice(
    rig: LakeRig, letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "SLICE_ENTRIES", 4)
    some = bodies(*(envelope(seq=n) for n in range(4)))
    writer = Writer(rig.objects, rig.seals)

    def cut_short() -> Iterator[tuple[str, str]]:
        yield from some[:3]
        raise StoreError("dead")

    with pytest.raises(StoreError, match="dead"):
        write_batch(writer, letters, cut_short())
    first = {key: rig.objects.get(key) for key in rig.listed()}
    assert first
    assert write_batch(writer, letters, some) == []
    again: dict[str, Any] = {key: rig.objects.get(key) for key in rig.listed()}
    assert first.items() <= again.items()
    assert len(rig.listed("open/samples/")) == 2
