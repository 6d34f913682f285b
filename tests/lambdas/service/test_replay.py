from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.testing import CLUSTER, START_MS
from daskscope_lambdas.ports import Buried, Deletion, StoreError
from daskscope_lambdas.service import rows_columns
from daskscope_lambdas.service.batch import write_batch
from daskscope_lambdas.service.envelope import pack
from daskscope_lambdas.service.exclusions import Exclusions
from daskscope_lambdas.service.letters import Letters, Sender, Unfit, letter_id, sender_of
from daskscope_lambdas.service.replay import Dead, Replayed, dead, replay
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.query.lake_rig import DAY, OTHER, START, LakeRig, envelope

EARLY = pack(envelope(seq=7, made_at_ms=-1))
"""Not fit for the lake, which takes no time before 1970."""


class Queue:
    """Numbers what it is sent; `arrived` is told of it before `send` returns."""

    def __init__(self, arrived: Callable[[str, str], object] = lambda _number, _body: None) -> None:
        self.bodies: list[str] = []
        self._arrived = arrived

    def send(self, body: str) -> None:
        if "ä" in body:
            raise ValueError("no ASCII")
        self.bodies.append(body)
        self._arrived(f"sent-{len(self.bodies)}", body)

    def delete(self, receipts: Sequence[str]) -> None:
        raise NotImplementedError


class GivenUp:
    """What the queue gave up on."""

    def __init__(self, queue: Queue, *bodies: str) -> None:
        self._queue, self.bodies = queue, [*bodies]

    def list(self) -> Any:
        return (Buried(body=body, reason="killed", buried_at=5.0) for body in self.bodies)

    def lasting(self) -> Any:
        raise NotImplementedError

    def send_back(self, chosen: Callable[[str], bool]) -> int:
        going = [body for body in self.bodies if chosen(body)]
        for body in going:
            self._queue.send(body)
        self.bodies = [body for body in self.bodies if body not in going]
        return len(going)


@pytest.fixture
def letters(rig: LakeRig, clock: FakeClock) -> Letters:
    return Letters(rig.objects, clock)


def write(rig: LakeRig, letters: Letters, *messages: tuple[str, str]) -> None:
    assert write_batch(Writer(rig.objects, rig.seals), letters, messages) == []


def seqs(rig: LakeRig) -> list[int]:
    return [row["seq"] for row in rig.lake().day("samples", account="acme", day=DAY).records()]


def ids(letters: Letters) -> list[str]:
    return [name for name, _ in letters.listed()]


def test_what_was_put_aside_is_kept_once_that_is_mended(
    rig: LakeRig, letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = pack(envelope(seq=7, made_at_ms=START_MS + 3_600_000))
    with monkeypatch.context() as broken:
        broken.setattr(rows_columns, "_LAST_MS", START_MS + 1_800_000)
        write(rig, letters, ("1", later), ("2", pack(envelope(seq=8))))
    assert seqs(rig) == [8]
    queue = Queue(lambda number, body: write(rig, letters, (number, body)))
    assert replay(letters, GivenUp(queue), queue) == Replayed(sent=1)
    assert sorted(seqs(rig)) == [7, 8]
    assert ids(letters) == []


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("account", [False, True])
def test_nothing_that_was_deleted_is_sent_back(
    rig: LakeRig, letters: Letters, adapters: LocalAdapters, clock: FakeClock, account: bool, done: bool
) -> None:
    """Nor when its deletion is long done, but for what an account sends that began anew."""
    clusters, deletions = adapters.clusters, adapters.deletions
    deletion = Deletion(account="acme", cluster=None if account else CLUSTER, asked_at=START + 60, by="ann")
    deletions.ask(deletion)
    clusters.enrol("acme", CLUSTER, START, START)
    clusters.forget("acme", CLUSTER, START + 60)
    if done:
        deletions.done(deletion)
    write(rig, letters, ("1", EARLY))
    died, other = pack(envelope(seq=9)), pack(envelope(cluster=OTHER, seq=8, received_at=START + 1e6))
    queue = Queue()
    given_up = GivenUp(queue, died, other)
    exclusions = Exclusions(deletions, clusters)
    told = replay(letters, given_up, queue, None, exclusions)
    assert (told.sent, told.left, queue.bodies) == (1, 2, [other])
    reason = "its cluster or account was deleted."
    assert told.problems == [f"{letter_id(EARLY)}: {reason}", f"{letter_id(died)}: {reason}"]
    assert (ids(letters), given_up.bodies) == ([letter_id(EARLY)], [died])


def test_what_is_still_not_fit_comes_back_as_the_same_letter(rig: LakeRig, letters: Letters, clock: FakeClock) -> None:
    """Also where it comes back before it was taken away."""
    write(rig, letters, ("1", EARLY))
    before = ids(letters)
    clock.advance(60)
    queue = Queue(lambda number, body: write(rig, letters, (number, body)))
    for _ in range(3):
        assert replay(letters, GivenUp(queue), queue) == Replayed(sent=1)
        assert ids(letters) == before == [letter_id(EARLY)]
    ((_, keys),) = letters.listed()
    letter = letters.read(keys)
    assert letter is not None
    assert (letter.body, letter.died_at, len(keys)) == (EARLY, clock.now(), 1)


def test_killed_after_it_was_sent_it_is_sent_once_more_and_is_one_row(rig: LakeRig, letters: Letters) -> None:
    good = pack(envelope(seq=1))
    letters.put([Unfit("1", good, "an older release could not read it")])

    def killed(_number: str, _body: str) -> None:
        raise StoreError("dead")

    queue = Queue(killed)
    with pytest.raises(StoreError, match="dead"):
        replay(letters, GivenUp(queue), queue)
    again = Queue()
    assert replay(letters, GivenUp(again), again) == Replayed(sent=1)
    assert ids(letters) == []
    write(rig, letters, ("2", queue.bodies[0]))
    write(rig, letters, ("3", again.bodies[0]))
    assert seqs(rig) == [1]


def test_a_letter_that_is_there_twice_is_shown_once_as_it_came_last(letters: Letters, clock: FakeClock) -> None:
    letters.put([Unfit("9", "poison", "first")])
    clock.advance(60)
    letters.put([Unfit("10", "poison", "last")])
    queue = Queue()
    (found,) = dead(letters, GivenUp(queue))
    name = letter_id("poison")
    assert found == Dead(id=name, place="store", reason="last", died_at=clock.now(), sender=Sender())
    assert replay(letters, GivenUp(queue), queue) == Replayed(sent=1)
    assert queue.bodies == ["poison"]
    assert ids(letters) == []


def test_both_places_are_seen_as_one(letters: Letters) -> None:
    killer = pack(envelope("globex", 4, cluster=OTHER, seq=3, part=2))
    letters.put([Unfit("1", EARLY, "early")])
    early, killed = dead(letters, GivenUp(Queue(), killer))
    assert (early.place, early.sender) == ("store", Sender("acme", CLUSTER, 1, START, 7, 0))
    assert killed == Dead(
        id=letter_id(killer), place="queue", reason="killed", died_at=5.0,
        sender=Sender("globex", OTHER, 4, START, 3, 2),
    )  # fmt: skip


def test_a_reason_may_repeat_whatever_a_message_held(letters: Letters) -> None:
    letters.put([Unfit("1", "a", "no column takes \ud800" + "x" * 5_000)])
    (found,) = dead(letters, GivenUp(Queue()))
    assert found.reason is not None
    assert found.reason.startswith("no column takes ?x")
    assert len(found.reason) == 1_000


def test_only_those_that_were_asked_for_are_sent(letters: Letters) -> None:
    letters.put([Unfit("1", "a", ""), Unfit("2", "b", "")])
    queue = Queue()
    given_up = GivenUp(queue, "b", "c", "d")
    wanted = [letter_id("b"), letter_id("c"), letter_id("x")]
    told = replay(letters, given_up, queue, wanted)
    assert told == Replayed(sent=3, left=2, unknown={letter_id("x")})
    assert sorted(queue.bodies) == ["b", "b", "c"]
    assert (ids(letters), given_up.bodies) == ([letter_id("a")], ["d"])


def test_what_is_no_letter_keeps_no_other_back(rig: LakeRig, letters: Letters) -> None:
    rig.objects.put_new("dead/unread/0000/1.json", b"no letter")
    letters.put([Unfit("1", "a", ""), Unfit("2", "ä", "")])
    queue = Queue()
    assert {each.reason for each in dead(letters, GivenUp(queue))} > {""}
    told = replay(letters, GivenUp(queue), queue)
    assert (told.sent, told.left, queue.bodies) == (1, 2, ["a"])
    assert [problem.partition(":")[0] for problem in told.problems] == sorted(["0000", letter_id("ä")])
    assert len(rig.listed("dead/")) == 2


@pytest.mark.parametrize("at", [1e300, -1e15])
def test_a_time_that_no_calendar_has_is_not_told(at: float) -> None:
    assert sender_of(pack(envelope(received_at=at))) == Sender("acme", CLUSTER, 1, None, 0, 0)


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_of_whatever_stands_there_a_sender_is_asked_without_harm(body: str) -> None:
    assert sender_of(body) == Sender()
    assert len(letter_id(body)) == 32
