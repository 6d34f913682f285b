"""Workers that went: one record each, with what the scheduler still knew of it.

`remove-worker` in the topic `all` says that one went; `reasons` tells why, from its own topic and from what its nanny
and the scheduler said. Not every release says all: the payload of `remove-worker` grew in 2024.3.0 and 2024.6.0
(`expected`, before `safe`), `worker-restart-memory` came in 2024.4.2, `worker-ttl-timed-out` in 2024.8.0. A worker that
is there no more is told even if nothing was said. One that came and went since the last read is known if it was seen
in between (see `roster`).
"""

from __future__ import annotations

import contextlib
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from distributed.comm.addressing import get_address_host
from distributed.scheduler import heartbeat_interval

from daskscope import wire
from daskscope.collect.bounds import n_bytes, n_items, worker_name
from daskscope.collect.growth import Growth, Point, slope
from daskscope.collect.payloads import as_key, as_name
from daskscope.collect.reasons import LOST, life_of, reason_of
from daskscope.collect.roster import Roster
from daskscope.collect.topics import Topics

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import WorkerState

MAX_DEATHS = 300
"""So many go into one message, in some 10 ms; further ones wait for the next."""
MAX_WAITING = 10_000
"""So many are held; further ones are counted as lost."""
MAX_KEYS = 20
MAX_STORY = 200
"""Messages of a worker's own topic that are looked at."""
MAX_HEARD = 1_000
"""Words of nannies about workers that still seem to be there."""
GRACE_S = 2.0
"""Who was lost so recently waits for the next read: the word of its nanny may be on its way."""
KILL_S = 5.0
"""So soon after its nanny says that it ends a worker, that one goes."""


@dataclass(slots=True, frozen=True)
class _Kill:
    """What a nanny said."""

    at_s: float
    address: str
    host: str
    memory_bytes: int
    pid: int


@dataclass(slots=True)
class _Gone:
    """A worker that is there no more, with all that would be forgotten if it had to wait."""

    at_s: float
    address: str
    said: Mapping[Any, Any]
    """Dask's `remove-worker`; empty if it was not heard."""
    name: str = ""
    has_nanny: bool = False
    pid: int = 0
    memory_limit_bytes: int = 0
    memory: list[Point] = field(default_factory=list[Point])
    silent: bool = False
    """Whether it had not been heard of for longer than Dask allows."""


class DeathReader:
    """Reads which workers went since it last looked; of those that went before, nothing is known."""

    def __init__(self, scheduler: Scheduler, topics: Topics, roster: Roster) -> None:
        self._scheduler, self._topics, self._roster = scheduler, topics, roster
        self._all = topics.follow("all")
        self._of_nannies = topics.follow("worker-restart-memory")
        self._of_scheduler = topics.follow("scheduler")
        for place in self._all, self._of_nannies, self._of_scheduler:
            deque(topics.read(place), 0)
        self._present: dict[str, WorkerState] = dict(scheduler.workers)
        self._n_changes = len(scheduler.total_nthreads_history)
        self._growth = Growth()
        self._killed: deque[_Kill] = deque(maxlen=MAX_HEARD)
        self._silent: dict[str, float] = {}
        self._waiting: deque[_Gone] = deque()
        self.n_deaths = 0
        self.n_unexpected = 0
        self._n_ahead = 0
        self._lost: Counter[str] = Counter()

    @property
    def lost(self) -> Counter[str]:
        """`deaths` that were too many to wait, or may have been: what Dask had dropped of the topic `all`;
        `unreadable-deaths`."""
        return self._lost + Counter({"deaths": self._all.n_missed})

    @property
    def waiting(self) -> Counter[str]:
        """What the last read left for the next and could have been told: `deaths`."""
        return Counter({"deaths": self._n_ahead})

    @property
    def behind(self) -> bool:
        """Whether the last read left deaths for the next that could have been told."""
        return self._n_ahead > 0

    def let_go(self) -> None:
        """Hold nothing that nobody will read, and leave unread what is new; those that were held count as lost."""
        for place in self._all, self._of_nannies, self._of_scheduler:
            self._topics.skip(place)
        self._lost["deaths"] += len(self._waiting)
        self._waiting.clear()
        self._present.clear()
        self._n_ahead = 0

    def read(self, workers: wire.Workers, now_s: float, *, last: bool = False) -> list[wire.Death]:
        """Deaths since the last call, as many as fit. `last`: wait for no nanny's word, for no later read will tell."""
        self._listen()
        for at_s, address, state, said in self._went(now_s):
            if len(self._waiting) < MAX_WAITING:
                with self._guarded():
                    self._waiting.append(self._remember(at_s, address, state, said))
            else:
                self._lost["deaths"] += 1
        self._growth.add(now_s, workers)
        deaths: list[wire.Death] = []
        young: list[_Gone] = []
        while self._waiting and len(deaths) < MAX_DEATHS:
            gone = self._waiting.popleft()
            may_wait = gone.has_nanny and not last and 0 <= now_s - gone.at_s < GRACE_S
            with self._guarded():
                death = self._death(gone, may_wait=may_wait)
                if death is None:
                    young.append(gone)
                else:
                    deaths.append(death)
        self._n_ahead = len(self._waiting)
        self._waiting.extend(young)
        return deaths

    @contextlib.contextmanager
    def _guarded(self) -> Generator[None]:
        try:
            yield
        except Exception:  # noqa: BLE001  # whatever stands in one event: that one is left out
            self._lost["unreadable-deaths"] += 1

    def _listen(self) -> None:
        """Take in whom nannies ended, and who was silent for too long."""
        for at_s, message in self._topics.read(self._of_nannies):
            if isinstance(message, Mapping) and isinstance(message.get("worker"), str):
                with contextlib.suppress(ValueError):  # no address: then it is no nanny's
                    self._killed.append(_told_by_nanny(at_s, message))
        for at_s, message in self._topics.read(self._of_scheduler):
            if isinstance(message, Mapping) and message.get("action") == "worker-ttl-timed-out":
                self._silent.update({each: at_s for each in message.get("workers", ()) if isinstance(each, str)})
        for address in list(islice(self._silent, max(len(self._silent) - MAX_HEARD, 0))):
            del self._silent[address]

    def _went(self, now_s: float) -> Iterator[tuple[float, str, WorkerState | None, Mapping[Any, Any]]]:
        """When, who, and what is known; a worker that came and went since the last call and was not seen has no
        state."""
        vanished = self._vanished()
        for at_s, said in self._topics.read(self._all):
            if _is_removal(said) and isinstance(said.get("worker"), str):
                address = said["worker"]
                yield at_s, address, vanished.pop(address, None) or self._sighted(address, at_s), said
        for address, state in vanished.items():
            heard = ((at_s, said) for at_s, said in self._story(address) if _is_removal(said))
            at_s, said = next(heard, (now_s, {}))
            yield at_s, address, state, said

    def _sighted(self, address: str, died_s: float) -> WorkerState | None:
        return self._roster.find(address, life_of(self._story(address), died_s).since_s, died_s)

    def _vanished(self) -> dict[str, WorkerState]:
        """Workers of the last call that are there no more, also where another came under their address."""
        n_changes = len(self._scheduler.total_nthreads_history)  # Dask adds to it for each that comes or goes
        if n_changes == self._n_changes:
            return {}
        self._n_changes = n_changes
        workers = self._scheduler.workers
        vanished = {address: state for address, state in self._present.items() if workers.get(address) is not state}
        self._present = dict(workers)
        return vanished

    def _story(self, address: str) -> Iterator[tuple[float, Any]]:
        return islice(self._topics.latest(address), MAX_STORY)

    def _remember(self, at_s: float, address: str, state: WorkerState | None, said: Mapping[Any, Any]) -> _Gone:
        gone = _Gone(at_s, address, said)
        if state is not None:
            gone.name = worker_name(state.name)
            gone.has_nanny, gone.pid = bool(state.nanny), state.pid
            gone.memory_limit_bytes = n_bytes(state.memory_limit)
            gone.memory = self._growth.of(address)
            beat_s, memory_bytes = state.last_seen, n_bytes(state.metrics.get("memory"))
            if memory_bytes and (not gone.memory or beat_s > gone.memory[-1][0]):
                gone.memory.append((beat_s, memory_bytes))
            # What the scheduler says of it since 2024.8.0; before, its clock tells.
            gone.silent = "stimulus_id" not in said and at_s - beat_s > self._patience_s()
        return gone

    def _patience_s(self) -> float:
        return max(self._scheduler.worker_ttl or float("inf"), 10 * heartbeat_interval(len(self._scheduler.workers)))

    def _death(self, gone: _Gone, *, may_wait: bool) -> wire.Death | None:
        """None if it is too early to say why it went, and it may wait."""
        life = life_of(self._story(gone.address), gone.at_s)
        kill = self._kill(gone, life.since_s)
        silent = gone.silent or self._silent.get(gone.address, 0.0) > life.since_s
        reason, expected = reason_of(life, gone.said, killed=kill is not None, silent=silent)
        if reason == LOST and may_wait:
            return None
        memory = [point for point in gone.memory if point[0] >= life.since_s]
        if kill is not None:
            memory.append((kill.at_s, kill.memory_bytes))
        self._silent.pop(gone.address, None)
        self.n_deaths += 1
        self.n_unexpected += not expected
        processing: Any = gone.said.get("processing-tasks", ())
        return wire.Death(
            no=self.n_deaths - 1,
            at_ms=round(gone.at_s * 1e3),
            worker=as_name(gone.address),
            name=gone.name,
            host=as_name(get_address_host(gone.address)),
            expected=expected,
            reason=reason,
            memory_bytes=memory[-1][1] if memory else 0,
            memory_limit_bytes=gone.memory_limit_bytes,
            memory_slope_bytes_s=slope(memory),
            n_processing=n_items(processing),
            processing=[as_key(key) for key in islice(processing, MAX_KEYS)],
            n_results_lost=n_items(gone.said.get("lost-computed-tasks"))
            + n_items(gone.said.get("lost-scattered-tasks")),
        )

    def _kill(self, gone: _Gone, since_s: float) -> _Kill | None:
        """What its nanny said of ending it; taken out, for it is told once."""
        kill = next((kill for kill in self._killed if self._is_meant(kill, gone, since_s)), None)
        if kill is not None:
            self._killed.remove(kill)
        return kill

    def _is_meant(self, kill: _Kill, gone: _Gone, since_s: float) -> bool:
        if kill.address == gone.address and kill.at_s > since_s:
            return not (kill.pid and gone.pid) or kill.pid == gone.pid
        # A nanny whose worker has only just come still calls it by the address of the one before.
        if not -GRACE_S <= gone.at_s - kill.at_s < KILL_S or kill.host != get_address_host(gone.address):
            return False
        return kill.pid == gone.pid if gone.pid else self._is_of_dead(kill.address)

    def _is_of_dead(self, address: str) -> bool:
        return address not in self._scheduler.workers and all(gone.address != address for gone in self._waiting)


def _told_by_nanny(at_s: float, message: Mapping[Any, Any]) -> _Kill:
    address, pid = message["worker"], message.get("pid")
    return _Kill(
        at_s, address, get_address_host(address), n_bytes(message.get("rss")), pid if isinstance(pid, int) else 0
    )


def _is_removal(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("action") == "remove-worker"
