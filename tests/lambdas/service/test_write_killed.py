"""Whatever dies between the queue and the lake, and in whatever batches messages come again: each row is there once."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from daskscope.testing import event, groups, workers
from daskscope_lambdas.ports import ObjectStore
from daskscope_lambdas.service.batch import write_batch
from daskscope_lambdas.service.envelope import Envelope, pack
from daskscope_lambdas.service.letters import Letters
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.testing import FakeClock
from tests.query.lake_rig import DAY, DAY_S, START, TOMORROW, LakeRig, envelope

BOOTS = ["0" * 23 + "1", "0" * 23 + "2"]


class KilledError(BaseException):
    """As a signal ends a process: nothing handles it."""


class Mortal:
    """An ObjectStore whose user is killed at the n-th put: before it, or when it is done."""

    def __init__(self, objects: ObjectStore, n: int, done: bool) -> None:
        self._objects, self._left, self._done = objects, n, done

    def put_new(self, key: str, body: bytes) -> None:
        self._left -= 1
        if self._left == 0 and not self._done:
            raise KilledError
        self._objects.put_new(key, body)
        if self._left == 0:
            raise KilledError

    def get(self, key: str) -> bytes:
        return self._objects.get(key)

    def list(self, prefix: str) -> Iterator[str]:
        return self._objects.list(prefix)

    def delete(self, key: str) -> None:
        self._objects.delete(key)


def sent(chance: random.Random) -> list[Envelope]:
    """Two boots of a cluster over two days; some messages in parts, the message itself last."""
    found = list[Envelope]()
    numbers = iter(range(10_000))
    for boot in BOOTS:
        for seq in range(8):
            for part in reversed(range(chance.choice([1, 1, 3]))):
                told = envelope(
                    boot=boot,
                    seq=seq,
                    part=part,
                    received_at=START + chance.choice([0.0, DAY_S]) + seq,
                    events=[event(no=next(numbers)) for _ in range(2)],
                    groups=groups({"no": next(numbers)}),
                    workers=workers([f"tcp://10.0.0.{part}:1"]),
                )
                found.append(told)
    return found


def misfits(chance: random.Random) -> list[str]:
    unfit = [pack(envelope(seq=100 + n, uptime_us=1 << 70)) for n in range(2)]
    return [*unfit, *(f"poison {chance.random()}" for _ in range(2))]


def drain(rig: LakeRig, clock: FakeClock, bodies: list[str], chance: random.Random) -> int:
    """Hands all of them over until none is left, as a queue may: in any order and company, twice, to who is killed.

    Returns how many were killed.
    """
    queue = dict(enumerate(bodies))
    killed = 0
    while queue:
        batch = chance.sample([*queue], k=chance.randint(1, min(len(queue), 12)))
        batch += chance.choices(batch, k=chance.choice([0, 0, 2]))
        mortal = Mortal(rig.objects, chance.randint(1, 20), chance.random() < 0.5)
        try:
            failed = write_batch(
                Writer(mortal, rig.seals), Letters(mortal, clock), [(str(number), queue[number]) for number in batch]
            )
        except KilledError:
            killed += 1
            continue
        assert failed == []
        if chance.random() < 0.2:
            continue  # killed right before it could say that these are done
        for number in batch:
            queue.pop(number, None)
    return killed


@pytest.mark.parametrize(
    "seeds", [range(2), pytest.param(range(2, 42), marks=[pytest.mark.long, pytest.mark.timeout(600)])], ids=str
)
def test_each_row_is_there_once_and_each_misfit_is_one_letter(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power cut here
    killed = 0
    for seed in seeds:
        chance = random.Random(seed)
        rig = LakeRig(tmp_path / str(seed))
        envelopes, unfit = sent(chance), misfits(chance)
        killed += drain(rig, clock, [*map(pack, envelopes), *unfit], chance)

        found = {table: rows(rig, table) for table in ("samples", "workers", "groups", "events")}
        whole = [each for each in envelopes if each.message.part == 0]
        assert found["samples"] == Counter((each.message.boot, each.message.seq) for each in whole), seed
        assert found["workers"] == Counter((each.message.boot, each.message.seq) for each in envelopes), seed
        assert found["groups"] == Counter(
            (e.message.boot, e.message.seq) for e in envelopes for _ in e.message.groups.no
        )
        assert found["events"] == Counter((e.message.boot, e.message.seq) for e in envelopes for _ in e.message.events)

        letters = Letters(rig.objects, clock)
        assert sorted(letter.body for _, keys in letters.listed() if (letter := letters.read(keys))) == sorted(unfit)
    assert killed > 3 * len(seeds), "else it shows nothing"


def rows(rig: LakeRig, table: str) -> Counter[tuple[str, int]]:
    """So many rows of each message, as readers see them."""
    return Counter(
        (row["boot"], row["seq"])
        for day in (DAY, TOMORROW)
        for row in rig.lake().day(table, account="acme", day=day).records()
    )
