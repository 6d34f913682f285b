"""A real scheduler with workers that exist only in its books: they take tasks, beat and finish what they are told to.

No process, no comms, no clock to wait for: what is left is the scheduler's own work.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any
from unittest import mock

from dask._expr import LLGExpr
from dask._task_spec import Task, TaskRef
from distributed import Scheduler
from distributed.comm.core import CommClosedError
from distributed.protocol.serialize import Serialized, serialize, to_serialize
from distributed.spans import SpanMetadata

CLIENT = "bench"
STAGES = ("read-csv", "clean", "merge-left", "assign", "shuffle-split", "shuffle-transfer", "groupby-agg", "to-parquet")
MIB, KIB = 1 << 20, 1 << 10
USUAL = (6000.0, 250.0, 800.0, 400.0, 2000.0, 900.0, 20.0)
"""Where a worker's metrics are drawn to: MiB of memory, % of CPU, four rates in KiB/s, ms between ticks."""


class _Nowhere:
    """The end of a comm that takes everything and brings it nowhere."""

    def send(self, *messages: object) -> None:
        pass

    async def write(self, message: object) -> None:
        del message
        # add_worker has set all up when it answers its worker; what follows only listens to it.
        raise CommClosedError


class Fleet:
    """A scheduler with `n_workers` workers of 4 threads and 16 GiB. Make it in a running event loop.

    Its metrics are random walks around USUAL, the same in every run.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self._random = random.Random(0)
        self._walks: dict[str, list[float]] = {}
        self._n_graphs = 0
        self._clock_s = 1_795_248_000.0

    @staticmethod
    async def of(n_workers: int) -> Fleet:
        scheduler = Scheduler(dashboard=False, dashboard_address="127.0.0.1:0", validate=False)
        # What listening would set.
        scheduler._address, scheduler.ip = "tcp://10.0.0.1:8786", "10.0.0.1"
        fleet = Fleet(scheduler)
        for n in range(n_workers):
            await fleet.join(f"tcp://10.0.{n // 250}.{n % 250 + 2}:{34000 + n * 7 % 9000}", n)
        return fleet

    async def join(self, address: str, number: int) -> None:
        nowhere: Any = _Nowhere()
        try:
            await self.scheduler.add_worker(
                nowhere, address=address, status="running", server_id=f"Worker-{number}", nthreads=4,
                name=str(number), resolve_address=False, now=0.0, resources={}, memory_limit=16 << 30,
                metrics=self._metrics(address), services={}, local_directory="/tmp", versions={}, nanny="",
                extra={}, stimulus_id="bench",
            )  # fmt: skip
        except CommClosedError:
            self.scheduler.stream_comms[address] = nowhere

    async def leave(self, address: str) -> None:
        await self.scheduler.remove_worker(address, stimulus_id="leave")
        del self._walks[address]

    def beat(self) -> None:
        """One heartbeat of each worker, with metrics that moved a little."""
        for address in self.scheduler.workers:
            self.scheduler.heartbeat_worker(address=address, resolve_address=False, metrics=self._metrics(address))

    def _metrics(self, address: str) -> dict[str, Any]:
        ws = self.scheduler.workers.get(address)
        n_processing = len(ws.processing) if ws else 0
        walks = self._walks.setdefault(address, list(USUAL))
        for n, usual in enumerate(USUAL):
            walks[n] = max(0.0, walks[n] + 0.2 * (usual - walks[n]) + self._random.gauss(0, 0.1 * usual))
        memory, cpu, read, write, disk_read, disk_write, tick = walks
        return {
            "task_counts": {"executing": min(4, n_processing), "ready": max(0, n_processing - 4), "memory": 40},
            "bandwidth": {"total": 100e6, "workers": {}, "types": {}},
            "digests_total_since_heartbeat": {("execute", "clean", "thread-cpu", "seconds"): 1.5},
            "managed_bytes": int(memory * 0.6) * MIB,
            "spilled_bytes": {"memory": 0, "disk": 0},
            "transfer": {"incoming_bytes": 0, "incoming_count": 0, "outgoing_bytes": 0, "outgoing_count": 0},
            "event_loop_interval": tick / 1000,
            "cpu": cpu,
            "memory": int(memory * MIB),
            "time": 0.0,
            "host_net_io": {"read_bps": read * KIB, "write_bps": write * KIB},
            "host_disk_io": {"read_bps": disk_read * KIB, "write_bps": disk_write * KIB},
            "num_fds": 60,
        }

    def submit(self, graph: dict[Any, Any], keys: set[Any]) -> None:
        """`update_graph`, as if a client had sent it."""
        self._n_graphs += 1
        expression: Any = to_serialize(LLGExpr(graph))
        work = self.scheduler.update_graph(
            client=CLIENT,
            expr_ser=Serialized(*serialize(expression, on_error="raise")),
            keys=keys,
            span_metadata=SpanMetadata(collections=[{"type": "low-level-graph"}]),
            internal_priority=None,
            submitting_task=None,
            stimulus_id=f"graph-{self._n_graphs}",
        )
        _run_inline(work)

    def submit_stages(self, n_tasks: int) -> set[Any]:
        """About `n_tasks` tasks in chains through STAGES, one group a stage; the keys that the client holds."""
        graph: dict[Any, Any] = {}
        # Dask names a layer by its function and a hash of its own.
        layers = [f"{stage}-{self._random.getrandbits(128):032x}" for stage in STAGES]
        n_chains = max(1, n_tasks // len(STAGES))
        for n in range(n_chains):
            before: Any = None
            for layer in layers:
                key = (layer, n)
                graph[key] = Task(key, _work, TaskRef(before)) if before else Task(key, _work, n)
                before = key
        keys = {(layers[-1], n) for n in range(n_chains)}
        self.submit(graph, keys)
        return keys

    def finish(self, n_tasks: int) -> int:
        """Let workers finish up to so many tasks, the oldest of each in turn; how many there were."""
        done = 0
        while done < n_tasks:
            ready = [next(iter(ws.processing)) for ws in self.scheduler.workers.values() if ws.processing]
            if not ready:
                break
            for ts in ready[: n_tasks - done]:
                self._finish(ts)
            done += len(ready[: n_tasks - done])
        return done

    def _finish(self, ts: Any) -> None:
        self._clock_s += 0.0125
        took_s = self._random.uniform(0.2, 0.8)
        self.scheduler.stream_handlers["task-finished"](
            key=ts.key,
            worker=ts.processing_on.address,
            stimulus_id="task-finished",
            run_id=ts.run_id,
            metadata={},
            nbytes=self._random.randrange(20_000, 40_000),
            type=b"",
            typename="pandas.core.frame.DataFrame",
            thread=1,
            startstops=[{"action": "compute", "start": self._clock_s - took_s, "stop": self._clock_s}],
        )

    def fail(self, key: str, text: str, traceback: str) -> None:
        """A task that fails on the worker it went to, and whose client then lets go of it."""
        self.submit({key: Task(key, _work, 0)}, {key})
        ts = self.scheduler.tasks[key]
        worker: Any = ts.processing_on
        self.scheduler.stream_handlers["task-erred"](
            key=key, worker=worker.address, stimulus_id="task-erred", run_id=ts.run_id, thread=1,
            startstops=[{"action": "compute", "start": self._clock_s - 0.1, "stop": self._clock_s}],
            exception=b"", traceback=b"", exception_text=text, traceback_text=traceback,
        )  # fmt: skip
        self.release({key})

    def release(self, keys: set[Any]) -> None:
        """The client lets go of its results."""
        self.scheduler.client_releases_keys(keys=keys, client=CLIENT, stimulus_id="release")


def _work(argument: object) -> object:
    return argument


def _run_inline(work: Awaitable[None]) -> None:
    """Run a coroutine to its end in this thread, with what it would hand to other threads done here."""

    async def here(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    with mock.patch("distributed.scheduler.offload", here):
        for _ in work.__await__():
            raise RuntimeError("update_graph waits for something that never comes here.")
