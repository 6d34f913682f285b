"""A message in parts tells what the whole does."""

import json
from dataclasses import fields

import pytest
from hypothesis import HealthCheck, given, settings

from daskscope import parcel, testing, wire
from daskscope.compression import decompress
from daskscope.contents import counted, told_again, told_once
from daskscope.parcel import in_parts, packed
from daskscope.parts import GREATEST, OF_EACH, SUMMED, halves
from daskscope.slices import COLUMNS, MAPS, OBJECTS, PROFILES, REFERRED, TABLES, Plain
from tests.plugin.stories import decoded, rows, run
from tests.plugin.test_wire import full_message

few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ITSELF = ("part", "halved", "merged", "sums", "phase", "reason", "identity", "itself", "totals", "lost")
"""What only the message itself tells."""


def plain_of(message: wire.Message) -> Plain:
    return json.loads(wire.encode(message))


def leaves(plain: Plain) -> list[Plain]:
    """Divided as far as it goes; the message itself is the last."""
    pair = halves(plain)
    return [plain] if pair is None else [*leaves(pair[1]), *leaves(pair[0])]


def test_every_field_of_a_message_is_divided_or_told_once_or_in_each_part() -> None:
    known = {*OF_EACH, *ITSELF, *TABLES, *OBJECTS, *REFERRED, PROFILES}
    assert known == {field.name for field in fields(wire.Message)}
    assert len(known) == sum(map(len, (OF_EACH, ITSELF, TABLES, OBJECTS, REFERRED, [PROFILES])))


@pytest.mark.parametrize("name", TABLES)
def test_every_column_of_a_table_is_divided(name: str) -> None:
    kind = TABLES[name]
    apart = {"tasks": {"first_no", "weight", "from_ms", "addresses"}}.get(name, set[str]())
    assert {*COLUMNS[name], *MAPS[name]} == {field.name for field in fields(kind)} - apart


@pytest.mark.parametrize(("name", "key"), OBJECTS.items())
def test_what_tells_two_objects_apart_is_a_field_of_them(name: str, key: str) -> None:
    (first, *_) = getattr(full_message(), name)
    assert hasattr(first, key)


@few
@given(run(1))
def test_all_parts_together_make_the_rows_of_the_whole(messages: list[wire.Message]) -> None:
    pieces = [decoded(piece) for piece in leaves(plain_of(messages[0]))]
    assert rows(pieces) == rows(messages)
    assert sorted(code.hash for piece in pieces for code in piece.codes) == sorted(c.hash for c in messages[0].codes)


@few
@given(run(1))
def test_parts_are_numbered_each_and_the_message_itself_comes_last_with_all_that_is_told_once(
    messages: list[wire.Message],
) -> None:
    (whole,) = messages
    pieces = [decoded(piece) for piece in leaves(plain_of(whole))]
    assert len({piece.part for piece in pieces}) == len(pieces)
    *parts, itself = pieces
    assert itself.part == 0
    assert (itself.identity, itself.totals, itself.lost) == (whole.identity, whole.totals, whole.lost)
    for part in parts:
        assert part.part > 0
        assert (part.cluster, part.boot, part.seq, part.made_at_ms) == (
            whole.cluster, whole.boot, whole.seq, whole.made_at_ms,
        )  # fmt: skip
        assert (part.identity, part.totals, part.lost, part.sums) == (None, wire.Totals(), {}, {})


@few
@given(run(1))
def test_what_is_counted_of_a_message_is_counted_of_its_json(messages: list[wire.Message]) -> None:
    (message,) = messages
    assert counted(plain_of(message)) == told_once(message) + told_again(message)


def test_a_message_without_lists_cannot_be_divided() -> None:
    bare = plain_of(testing.message(workers=wire.Workers()))
    assert halves(bare) is None
    single = bare | {"events": plain_of(testing.message(events=[testing.event()]))["events"]}
    itself, part = halves(single) or ({}, {})
    assert "events" not in itself
    assert len(part["events"]) == 1
    assert halves(part) is None


def test_the_sums_of_workers_are_told_where_the_workers_are_not() -> None:
    workers = testing.workers(["a", "b", "c"], cpu_pct=[1, 2, 4], loop_interval_ms=[20, 90, 30])
    itself, _ = halves(plain_of(testing.message(workers=workers))) or ({}, {})
    assert itself["sums"]["cpu_pct"] == 7
    assert itself["sums"]["loop_interval_ms"] == 90
    assert set(itself["sums"]) == {*SUMMED, GREATEST} - {"gpu_pct", "gpu_memory_mib"}


def large() -> wire.Message:
    """A body of 1.2 MB: lines that do not compress."""
    import random

    chance = random.Random(7)
    return testing.message(logs=testing.logs(*({"no": n, "text": chance.randbytes(500).hex()} for n in range(2_400))))


@pytest.mark.parametrize("most_plain_bytes", [8 << 20, 100_000])
def test_what_is_too_much_for_one_body_is_packed_in_parts_that_fit(
    monkeypatch: pytest.MonkeyPatch, most_plain_bytes: int
) -> None:
    monkeypatch.setattr(parcel, "MAX_PLAIN_BYTES", most_plain_bytes)
    message = large()
    parcels = packed(message, (), told_once(message))
    assert len(parcels) > 1
    assert all(len(each.body) <= parcel.MAX_BODY_BYTES < wire.MAX_BODY_BYTES for each in parcels)
    assert all(each.n_plain_bytes <= most_plain_bytes for each in parcels)
    assert len({each.name for each in parcels}) == len(parcels)
    assert [each.part == 0 for each in parcels] == [False] * (len(parcels) - 1) + [True]
    assert [each.is_whole for each in parcels] == [False] * len(parcels)
    assert sum((each.once for each in parcels), start=parcels[0].once.__class__()) == told_once(message)
    told = [wire.decode(decompress(each.body, each.encoding)) for each in parcels]
    assert rows(told) == rows([message])


def test_a_usual_message_goes_as_it_is() -> None:
    message = testing.message(seq=7)
    (whole,) = packed(message, (), told_once(message))
    assert (whole.seq, whole.part, whole.is_whole, whole.is_end) == (7, 0, True, False)
    assert wire.decode(decompress(whole.body, whole.encoding)) == message


@pytest.mark.parametrize(
    ("message", "is_end"),
    [
        (testing.message(seq=0), True),
        (testing.message(seq=3, merged=3), True),
        (testing.message(seq=3), False),
        (testing.message(seq=3, identity=testing.identity()), True),
        (testing.message(seq=3, phase="closed"), True),
    ],
)
def test_the_ends_of_a_story_are_known(message: wire.Message, is_end: bool) -> None:
    (whole,) = packed(message, (), told_once(message))
    assert whole.is_end == is_end
    assert [each.is_end for each in in_parts(whole.opened(), ())][-1] == is_end
