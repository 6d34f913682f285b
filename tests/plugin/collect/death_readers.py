"""A reader of deaths with a clock of its own, and how a test ends a worker."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from distributed.scheduler import WorkerState

from daskscope import wire
from daskscope.collect.deaths import DeathReader
from daskscope.collect.roster import Roster
from daskscope.collect.topics import Topics
from tests.plugin.rig import Cluster


class Reading:
    """A reader, and the time of the scheduler it reads."""

    def __init__(self, cluster: Cluster) -> None:
        self.topics = Topics(cluster.scheduler)
        self.roster = Roster(cluster.scheduler)
        self.reader = DeathReader(cluster.scheduler, self.topics, self.roster)
        self.topics.start()
        self.now_s = self.began_s = cluster.scheduler.total_nthreads_history[-1][0]

    def __call__(
        self, *, after_s: float = 60.0, last: bool = False, memory_mib: Mapping[str, int] = MappingProxyType({})
    ) -> list[wire.Death]:
        self.now_s += after_s
        columns = wire.Workers(address=list(memory_mib), memory_mib=list(memory_mib.values()))
        return self.reader.read(columns, self.now_s, last=last)


def cut_off(cluster: Cluster, address: str) -> WorkerState:
    """End a worker's connection, as if its machine were gone."""
    state = cluster.scheduler.workers[address]
    cluster.scheduler.stream_comms[address].abort()
    return state


def empty(topics: Topics, names: Iterable[str]) -> None:
    for name in names:
        found = topics._find(name)
        assert found is not None
        found[1].clear()
