"""Which encoding a body has, as the server says what it takes."""

import sys
from collections.abc import Callable

import pytest

from daskscope import wire
from daskscope.compression import SAMPLED, Encoding
from daskscope.outcome import Outcome
from daskscope.pace import PROBE_S
from daskscope.sampling import PLAIN_S, SAMPLED_TRIES
from tests.plugin.rig import Inbox
from tests.plugin.sending import AGAIN, Bench, seqs

TAKES = Outcome("kept", "", wire.Reply(id=1, url="/x", accepts=[*SAMPLED]))
TAKES_NONE = Outcome("kept", "", wire.Reply(id=1, url="/x"))
NOT_TAKEN = Outcome("plain", "HTTP 415: send zstd, gzip or none")


class Wire(Inbox):
    """Notes in which encoding each try came."""

    def __init__(self, answer: Callable[[str], Outcome]) -> None:
        super().__init__(answer)
        self.encodings: list[str] = []

    def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
        self.encodings.append(encoding)
        return super().deliver(name, body, encoding, is_own=is_own)


def negotiating(*outcomes: Outcome) -> tuple[Bench, Wire]:
    bench = Bench(*outcomes, jitter=0.0)
    seen = Wire(bench._answer)
    bench.inbox = bench.sender._transport = seen
    return bench, seen


def report(bench: Bench, *seq: int) -> None:
    bench.put(*seq)
    bench.step()


@pytest.mark.parametrize("is_installed", [True, False])
def test_the_sample_is_used_once_the_server_has_said_that_it_takes_it(
    monkeypatch: pytest.MonkeyPatch, is_installed: bool
) -> None:
    if not is_installed:
        monkeypatch.setitem(sys.modules, "zstandard", None)
    plain, sampled = ("zstd", SAMPLED[0]) if is_installed else ("gzip", SAMPLED[1])
    bench, seen = negotiating(TAKES_NONE, TAKES, TAKES, TAKES)
    sizes = list[int]()
    for seq in range(4):
        report(bench, seq)
        sizes.append(bench.sender.n_delivered_bytes - sum(sizes))
    assert seen.encodings == [plain, plain, sampled, sampled]
    assert seqs(bench) == [0, 1, 2, 3]
    assert sizes[2] < sizes[1]
    assert bench.sender.lost == {}


def test_no_encoding_but_a_known_one_is_ever_used() -> None:
    strange = Outcome("kept", "", wire.Reply(id=1, url="/x", accepts=["br", "daskscope-99-zstd"]))
    bench, seen = negotiating(strange)
    report(bench, 0)
    report(bench, 1)
    assert seen.encodings == ["zstd", "zstd"]


def test_a_message_after_the_sample_that_is_not_taken_goes_again_plain_and_all_later_ones_do() -> None:
    bench, seen = negotiating(TAKES, AGAIN, NOT_TAKEN, AGAIN, TAKES, TAKES, TAKES, TAKES)
    report(bench, 0)
    report(bench, 1)  # fails, and waits
    bench.put(2, 3)
    bench.finish()
    report(bench, 4)
    assert seen.encodings == ["zstd", SAMPLED[0], SAMPLED[0], "zstd", "zstd", "zstd", "zstd", "zstd"]
    assert seqs(bench) == [0, 1, 2, 3, 4]
    assert bench.sender.lost == {}
    assert (bench.sender.n_delivered, bench.sender.n_failed_tries, bench.sender._buffer.n_bytes) == (5, 3, 0)


@pytest.mark.parametrize("final", [Outcome("refused", "HTTP 422: no"), Outcome("denied", "HTTP 401")])
def test_where_plain_is_refused_too_it_was_not_for_the_sample_which_is_used_again(final: Outcome) -> None:
    bench, seen = negotiating(TAKES, NOT_TAKEN, final, TAKES, TAKES)
    report(bench, 0)
    report(bench, 1)
    bench.step()
    assert seen.encodings == ["zstd", SAMPLED[0], "zstd"]
    while len(bench.inbox.bodies) < 2:
        bench.clock.now_s += PROBE_S
        report(bench, 2)
    bench.put(3)
    bench.finish()
    assert seen.encodings[-1] == SAMPLED[0]
    assert bench.sender.lost == ({"refused": 1} if final.verdict == "refused" else {})


def test_a_server_that_takes_the_sample_no_more_gets_what_waits_plain() -> None:
    """One that was set back to an older version, say: its reply no longer names it."""
    bench, seen = negotiating(TAKES, AGAIN, TAKES_NONE)
    report(bench, 0)
    report(bench, 1, 2)
    bench.step()  # 1 is kept
    bench.put(3)
    bench.finish()
    assert seen.encodings == ["zstd", SAMPLED[0], SAMPLED[0], "zstd", "zstd"]
    assert seqs(bench) == [0, 1, 2, 3]


def test_a_transport_that_wants_plain_what_is_plain_has_refused_it() -> None:
    bench, _ = negotiating(NOT_TAKEN)
    report(bench, 0)
    assert bench.n_waiting == 0
    assert bench.sender.lost == {"refused": 1}


def behind_a_proxy(answer: Outcome) -> tuple[Bench, Wire]:
    """Plain is kept; whatever comes after the sample is answered like this."""
    bench = Bench(jitter=0.0)
    seen = Wire(lambda _: answer if seen.encodings[-1] in SAMPLED else TAKES)
    bench.inbox = bench.sender._transport = seen
    return bench, seen


@pytest.mark.parametrize(
    "answer", [AGAIN, Outcome("again", "ReadError: reset"), Outcome("again", "HTTP 502", wait_s=9)]
)
def test_a_proxy_that_fails_at_the_sample_and_says_that_the_server_does_stops_nothing(answer: Outcome) -> None:
    bench, seen = behind_a_proxy(answer)
    for seq in range(200):
        bench.put(seq)
        bench.finish()
        bench.clock.now_s += 30.0
    assert seqs(bench) == [*range(200)]
    assert bench.sender.lost == {}
    n_hours = (bench.clock.now_s - 1_000.0) // PLAIN_S
    tried = [n for n, encoding in enumerate(seen.encodings) if encoding in SAMPLED]
    assert SAMPLED_TRIES <= len(tried) <= SAMPLED_TRIES * (n_hours + 1), "tried again once an hour, no oftener"


def test_after_an_hour_the_sample_is_tried_again_and_used_where_it_passes() -> None:
    passes = False
    bench = Bench(jitter=0.0)
    seen = Wire(lambda _: AGAIN if seen.encodings[-1] in SAMPLED and not passes else TAKES)
    bench.inbox = bench.sender._transport = seen
    report(bench, 0)
    bench.put(1)
    bench.finish()
    passes = True
    report(bench, 2)
    bench.clock.now_s += PLAIN_S
    report(bench, 3)
    report(bench, 4)
    assert seen.encodings == ["zstd", *[SAMPLED[0]] * SAMPLED_TRIES, "zstd", "zstd", "zstd", SAMPLED[0]]
    assert seqs(bench) == [0, 1, 2, 3, 4]


def test_a_close_tries_plain_at_once() -> None:
    bench, seen = behind_a_proxy(AGAIN)
    report(bench, 0)
    bench.put(1, 2)
    bench.sender._pace.close()
    while bench.step():
        bench.clock.now_s += bench.pause_s or 0
    assert seen.encodings == ["zstd", SAMPLED[0], "zstd", SAMPLED[0], "zstd"]
    assert seqs(bench) == [0, 2, 1]


def test_where_the_server_itself_is_away_for_long_nothing_but_the_encoding_changes() -> None:
    bench, seen = negotiating(TAKES, *[AGAIN] * 20)
    report(bench, 0)
    bench.put(1)
    bench.finish()
    assert seqs(bench) == [0, 1]
    assert bench.sender.n_failed_tries == 20
    assert seen.encodings == ["zstd", *[SAMPLED[0]] * SAMPLED_TRIES, *["zstd"] * (21 - SAMPLED_TRIES)]


def test_one_that_cannot_be_made_plain_any_more_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _ = negotiating(TAKES, AGAIN, TAKES_NONE)
    report(bench, 0)
    report(bench, 1, 2)
    bench.step()  # 1 is kept, and the server takes the sample no more
    with monkeypatch.context() as broken:
        broken.setattr("daskscope.parcel.decompress", lambda *_: 1 // 0)
        bench.clock.now_s += 60.0
        bench.step()
    report(bench, 3)
    bench.finish()
    assert bench.sender.lost == {"failed": 1}
    assert seqs(bench) == [0, 1, 3]
