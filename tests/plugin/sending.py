"""A sender with a clock, a chance and a transport that are the test's."""

from collections.abc import Callable

from daskscope import testing, wire
from daskscope.outcome import Outcome
from daskscope.parcel import Shelf
from daskscope.sender import Sender
from tests.plugin.rig import KEPT, Inbox

AGAIN = Outcome("again", "HTTP 503")


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


class Bench:
    """A sender whose thread never starts: `step` is called by the test."""

    def __init__(self, *outcomes: Outcome, jitter: float = 0.5, shelf: Shelf | None = None) -> None:
        self.outcomes = list(outcomes)
        self.tried: list[str] = []
        self.replies: list[wire.Reply] = []
        self.clock = Clock()
        self.inbox = Inbox(self._answer)
        self.sender = Sender(self.inbox, self.replies.append, monotonic=self.clock, jitter=lambda: jitter, shelf=shelf)

    def _answer(self, name: str) -> Outcome:
        self.tried.append(name)
        return self.outcomes.pop(0) if self.outcomes else KEPT

    def put(self, *seqs: int) -> None:
        for seq in seqs:
            self.sender.put(testing.message(seq=seq))

    def step(self) -> bool:
        return self.sender._step()

    def finish(self) -> None:
        """Until nothing waits any more, its pauses passing."""
        while self.n_waiting:
            self.clock.now_s += self.pause_s or 0.0
            self.step()

    @property
    def pause_s(self) -> float | None:
        return self.sender._pause_s()

    @property
    def n_waiting(self) -> int:
        return len(self.sender._buffer) + len(self.sender._inbox)


def seqs(bench: Bench) -> list[int]:
    return [wire.decode(body).seq for body in bench.inbox.bodies]


def started(
    answer: Callable[[str], Outcome],
    on_reply: Callable[[wire.Reply], None] = lambda _: None,
    shelf: Shelf | None = None,
) -> tuple[Sender, Inbox]:
    inbox = Inbox(answer)
    sender = Sender(inbox, on_reply, shelf=shelf)
    sender.start()
    return sender, inbox
