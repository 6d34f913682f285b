"""What a server may answer, and what the sender makes of it: how many requests, how long between them, what is lost."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import pytest

from daskscope import testing, wire
from daskscope.compression import Encoding
from daskscope.contents import told_once
from daskscope.outcome import Outcome, judge
from daskscope.pace import DRAIN_S
from daskscope.sender import LEAST_BODY_BYTES
from tests.plugin.rig import KEPT, REPLY, Inbox
from tests.plugin.sending import AGAIN, Bench, seqs
from tests.plugin.stories import rows


@dataclass(frozen=True)
class Case:
    """A server that answers every try of the first message like this, for an hour."""

    status: int
    retry_after: str | None
    n_requests: int
    """In that hour."""
    waits_s: tuple[float, ...] = ()
    """Between the first ones, with a jitter that is always the longest."""
    lost: str = ""
    """The reason it counts under, if it is."""
    body: bytes = b"{}"


BACKOFF_S = (2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0)
IN_AN_HOUR = 5 + 1 + (3600 - 62) // 60
CASES = [
    Case(200, None, 1, body=REPLY), Case(202, None, 1, body=REPLY),
    Case(200, None, IN_AN_HOUR, BACKOFF_S), Case(200, None, IN_AN_HOUR, BACKOFF_S, body=b"<html>Please log in</html>"),
    Case(204, None, IN_AN_HOUR, BACKOFF_S, body=b""),
    Case(301, None, 1, lost="refused"), Case(302, None, 1, lost="refused"), Case(308, None, 1, lost="refused"),
    Case(400, None, 1, lost="refused"), Case(404, None, 1, lost="refused"), Case(410, None, 1, lost="refused"),
    Case(415, None, 1, lost="refused"), Case(422, None, 1, lost="refused"),
    Case(401, None, 7, (600.0, 600.0)), Case(403, None, 7, (600.0, 600.0)), Case(401, "1", 7, (600.0,)),
    Case(413, None, 1, lost="too-large"),
    Case(408, None, IN_AN_HOUR, BACKOFF_S), Case(425, None, IN_AN_HOUR, BACKOFF_S),
    Case(429, None, 61, (60.0, 60.0)), Case(429, "5", IN_AN_HOUR, (5.0, 5.0, 8.0, 16.0)),
    Case(429, "100000", 13, (300.0, 300.0)), Case(503, "120", 31, (120.0, 120.0)),
    Case(500, None, IN_AN_HOUR, BACKOFF_S), Case(502, None, IN_AN_HOUR, BACKOFF_S),
    Case(503, None, IN_AN_HOUR, BACKOFF_S), Case(504, None, IN_AN_HOUR, BACKOFF_S),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.status}-{case.retry_after}-{case.body.decode()[:7]}")
def test_an_hour_of_one_answer(case: Case) -> None:
    bench = Bench(jitter=1.0)
    tried_at: list[float] = []

    def answer(name: str) -> Outcome:
        tried_at.append(bench.clock.now_s)
        return judge(case.status, case.retry_after, case.body, "zstd")

    bench.inbox.answer = answer
    bench.put(0)
    bench.step()
    began_s = bench.clock.now_s
    while bench.n_waiting and bench.clock.now_s + (bench.pause_s or 0.0) <= began_s + 3600.0:
        bench.clock.now_s += bench.pause_s or 0.0
        bench.step()
    waits_s = [after - before for before, after in pairwise(tried_at)]
    assert (len(tried_at), tuple(waits_s[: len(case.waits_s)])) == (case.n_requests, case.waits_s)
    assert bench.sender.lost == ({case.lost: 1} if case.lost else {})
    assert bool(bench.n_waiting) == (case.n_requests > 1)


def test_a_denied_token_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(*[Outcome("denied", "HTTP 401")] * 5, KEPT, Outcome("denied", "HTTP 401"))
    for seq in range(2):
        bench.put(seq)
        bench.step()
        bench.finish()
        bench.clock.now_s += 600.0
    said = [record.getMessage() for record in caplog.records]
    assert said == ["daskscope: not reported for now, the workload goes on: HTTP 401."] * 2, "anew after it was taken"


class Narrow(Inbox):
    """A server, or what stands before it, that takes no body above a size."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self.most_bytes = most_bytes
        self.tried: list[bytes] = []

    def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
        self.tried.append(body)
        if len(body) > self.most_bytes:
            return judge(413, None, b"{}", encoding)
        return super().deliver(name, body, encoding, is_own=is_own)


def narrow(most_bytes: int, message: wire.Message) -> tuple[Bench, Narrow, list[wire.Message]]:
    bench = Bench()
    server = Narrow(most_bytes)
    bench.sender._transport = server
    bench.sender.put(message)
    bench.step()
    bench.finish()
    return bench, server, [wire.decode(body) for body in server.bodies]


def lines(n: int) -> wire.Message:
    texts = [hashlib.sha256(b"%d" % no).hexdigest() for no in range(n)]
    events = [testing.event(no=no) for no in range(7)]
    return testing.message(
        logs=testing.logs(*({"no": no, "text": text} for no, text in enumerate(texts))), events=events
    )


@pytest.mark.parametrize("most_bytes", [2_000, 5_000, 10_000])
def test_what_is_too_large_for_the_server_goes_in_parts_and_no_body_is_sent_twice(most_bytes: int) -> None:
    message = lines(500)
    bench, server, kept = narrow(most_bytes, message)
    assert len(kept) > 1
    assert rows(kept) == rows([message])
    assert kept[-1].part == 0, "the message itself comes last"
    assert len(set(server.tried)) == len(server.tried)
    assert bench.sender.lost == {}
    assert bench.sender.n_failed_tries == len(server.tried) - len(kept)


@pytest.mark.parametrize("most_bytes", [0, 2_000])
def test_parts_are_not_sent_all_at_once(most_bytes: int) -> None:
    bench = Bench()
    server = bench.sender._transport = Narrow(most_bytes)
    bench.sender.put(lines(500))
    began_s = bench.clock.now_s
    bench.step()
    bench.finish()
    assert bench.clock.now_s - began_s >= DRAIN_S * (len(server.tried) - 1) > 5.0
    assert bench.pause_s is None


def test_what_cannot_be_divided_further_is_dropped_and_counted_and_the_rest_arrives() -> None:
    text = random.Random(3).randbytes(4_000).hex()
    message = testing.message(
        logs=testing.logs({"no": 0}, {"no": 1, "text": text}, {"no": 2}), events=[testing.event()]
    )
    bench, _, kept = narrow(3_000, message)
    assert bench.sender.lost == {"too-large": 1, "parts": 1, "log-lines": 1}
    assert sorted(no for each in kept for no in each.logs.no) == [0, 2]
    assert [each.part for each in kept][-1] == 0


@pytest.mark.parametrize("n_lines", [0, 500])
def test_a_server_that_takes_nothing_at_all_is_asked_no_more_than_there_are_kibibytes(n_lines: int) -> None:
    message = lines(n_lines) if n_lines else testing.message()
    bench, server, kept = narrow(0, message)
    assert kept == []
    assert len(server.tried) <= 4 * max(len(server.tried[0]) // LEAST_BODY_BYTES, 1)
    told = Counter({name: n for name, n in bench.sender.lost.items() if name not in ("too-large", "parts")})
    assert told == told_once(message)
    assert bench.sender.lost["too-large"] - bench.sender.lost["parts"] == 1


def test_a_message_over_the_limit_is_divided_before_its_first_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daskscope.parcel.MAX_BODY_BYTES", 5_000)
    message = lines(500)
    bench, server, kept = narrow(5_000, message)
    assert len(kept) == len(server.tried) > 1
    assert rows(kept) == rows([message])
    assert bench.sender.n_failed_tries == 0


def test_after_an_outage_at_most_two_messages_a_second_are_sent_until_none_is_left() -> None:
    bench = Bench(*[AGAIN] * 4, jitter=1.0)
    times: list[float] = []
    bench.inbox.answer = lambda name: (times.append(bench.clock.now_s), bench._answer(name))[1]
    bench.put(*range(60))
    bench.step()
    bench.finish()
    assert seqs(bench) == [*range(60)]
    gaps = [after - before for before, after in pairwise(times[4:])]
    assert set(gaps) == {DRAIN_S}
    bench.clock.now_s += 10.0
    bench.put(60, 61)  # what comes later is not held back
    bench.step()
    bench.step()
    assert times[-1] == times[-2] == bench.clock.now_s


def test_where_messages_come_faster_than_that_those_that_wait_still_grow_fewer() -> None:
    bench = Bench(*[AGAIN] * 4, jitter=1.0)
    times: list[float] = []
    bench.inbox.answer = lambda name: (times.append(bench.clock.now_s), bench._answer(name))[1]
    for seq in range(10):
        bench.sender.put(testing.message(seq=seq, next_s=0.2))
    bench.step()
    bench.finish()
    assert {round(after - before, 6) for before, after in pairwise(times[4:])} == {0.1}
