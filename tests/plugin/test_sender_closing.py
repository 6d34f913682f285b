"""How a sender ends: with its thread, in a fork, and with a server that does not answer."""

import os
import threading

import pytest

from daskscope import pace, testing
from daskscope import sender as module
from daskscope.outcome import Outcome
from daskscope.sender import Sender
from tests.plugin.rig import KEPT, Inbox
from tests.plugin.sending import AGAIN, Bench, seqs, started


def closing(bench: Bench) -> int:
    """Steps from the close to the end of the thread, its pauses passing."""
    bench.sender._pace.close()
    n_steps = 0
    while bench.step():
        n_steps += 1
        assert n_steps < 1000
        if not bench.sender._pace.has_given_up:
            bench.clock.now_s += bench.pause_s or 0
    return n_steps


def test_closing_sends_all_that_is_left() -> None:
    bench = Bench(AGAIN)
    bench.put(*range(5))
    bench.step()
    closing(bench)
    assert seqs(bench) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
def test_closing_gives_up_after_two_failures_in_a_row(jitter: float) -> None:
    bench = Bench(AGAIN, KEPT, AGAIN, AGAIN, KEPT, jitter=jitter)
    bench.put(*range(5))
    closing(bench)
    assert len(bench.tried) == 4
    assert seqs(bench) == [4], "after a failure what tells of the end has its turn"


def test_closing_does_not_wait_for_retry_after_nor_for_a_denied_token() -> None:
    for outcome in (Outcome("again", "HTTP 503", wait_s=300.0), Outcome("denied", "HTTP 401")):
        bench = Bench(outcome)
        bench.put(0)
        bench.sender._pace.close()
        bench.step()
        assert bench.pause_s is not None
        assert bench.pause_s <= pace.BACKOFF_BASE_S


def test_the_thread_delivers_and_ends_with_close() -> None:
    sender, inbox = started(lambda _: KEPT)
    sender.put(testing.message(seq=0))
    assert inbox.take().seq == 0
    sender.put(testing.message(seq=1))
    sender.close()
    assert inbox.take().seq == 1
    assert not sender._thread.is_alive()
    sender.close()  # a second time is quiet


def test_close_leaves_a_black_hole_within_its_time_and_says_what_is_left(caplog: pytest.LogCaptureFixture) -> None:
    tried, release = threading.Event(), threading.Event()

    def black_hole(name: str) -> Outcome:
        tried.set()
        release.wait(30)
        return KEPT

    sender, _ = started(black_hole)
    sender.put(testing.message(seq=0, events=[testing.event()]))
    sender.put(testing.message(seq=1))
    assert tried.wait(10)
    try:
        sender.close(timeout_s=0.05)
        assert sender._thread.is_alive(), "it was left where it hangs"
        assert sender._thread.daemon, "and keeps no process from ending"
        assert sender.lost == {"closing": 2, "events": 1}
        sender.close(timeout_s=0.05)
        assert [record.getMessage() for record in caplog.records] == [
            "daskscope: 2 messages could not be delivered before the scheduler closed, 1 events."
        ], "once"
        assert sender.lost["closing"] == 2
    finally:
        release.set()
        sender._thread.join(10)


def test_close_waits_less_for_a_server_that_failed_the_last_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FAILING_CLOSE_S", 0.05)
    monkeypatch.setattr(pace, "BACKOFF_BASE_S", 0.0)
    failed, hangs, release = threading.Event(), threading.Event(), threading.Event()

    def fails_then_hangs(name: str) -> Outcome:
        if failed.is_set():
            hangs.set()
            release.wait(30)
        failed.set()
        return Outcome("again", "ReadTimeout")

    sender, _ = started(fails_then_hangs)
    sender.put(testing.message(seq=0))
    assert hangs.wait(10)
    try:
        sender.close(timeout_s=60)  # the test's own time limit tells if it waits as long
        assert sender._thread.is_alive()
    finally:
        release.set()
        sender._thread.join(10)


def test_close_before_start_returns_at_once() -> None:
    Sender(Inbox(), lambda _: None).close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_sends_nothing_and_its_close_is_quiet() -> None:
    sender, inbox = started(lambda _: KEPT)
    sender.put(testing.message(seq=0))
    assert inbox.take().seq == 0
    pid = os.fork()
    if pid == 0:
        sender.put(testing.message(seq=9))
        sender.close()
        os._exit(0 if not sender._inbox and not sender._buffer else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    sender.put(testing.message(seq=1))
    assert inbox.take().seq == 1, "the parent goes on"
    sender.close()
