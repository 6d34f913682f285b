"""Counts what happens on a scheduler as Dask's own hooks tell it: by another way than daskscope, which polls."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from dask.utils import key_split
from distributed import Client, Scheduler, SchedulerPlugin
from distributed.utils import key_split_group


@dataclass
class Account:
    """What a witness has counted; keys of groups are their names, of workers their addresses."""

    done: Counter[str] = field(default_factory=Counter[str])
    """Tasks that a worker finished, by group."""
    failed: Counter[str] = field(default_factory=Counter[str])
    """Tasks that failed themselves, by group; not those that depend on them."""
    done_by: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Tasks that a worker ended, one way or the other, by worker and group."""
    nbytes: Counter[str] = field(default_factory=Counter[str])
    """Size of the results as they were made, by prefix."""
    seconds: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Time of workers by prefix and action, of tasks that succeeded."""
    n_computations: int = 0
    came: list[str] = field(default_factory=list[str])
    went: list[str] = field(default_factory=list[str])
    """Addresses of workers, in order."""
    clients_came: list[str] = field(default_factory=list[str])
    clients_went: list[str] = field(default_factory=list[str])


class Witness(SchedulerPlugin):
    """Registered before anything is worked; `account_of` asks for what it knows."""

    name = "witness"

    def __init__(self) -> None:
        self.account = Account()
        self._computations = set[str]()

    async def start(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        if start != "processing" or finish not in ("memory", "erred"):
            return
        account, group = self.account, key_split_group(key)
        if finish == "erred":
            account.failed[group] += kwargs.get("cause") == key
        else:
            account.done[group] += 1
            account.nbytes[key_split(key)] += kwargs.get("nbytes") or 0
            for step in kwargs.get("startstops") or ():
                account.seconds[key_split(key)][step["action"]] += step["stop"] - step["start"]
        if kwargs.get("startstops"):  # what the scheduler gave up was ended by no worker
            account.done_by[kwargs["worker"], group] += 1

    def update_graph(self, scheduler: Scheduler, **kwargs: Any) -> None:
        youngest = str(scheduler.computations[-1].id)
        self.account.n_computations += youngest not in self._computations
        self._computations.add(youngest)

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        self.account.came.append(worker)

    def remove_worker(self, scheduler: Scheduler, worker: str, **kwargs: Any) -> None:
        self.account.went.append(worker)

    def add_client(self, scheduler: Scheduler, client: str) -> None:
        self.account.clients_came.append(client)

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        self.account.clients_went.append(client)


def account_of(client: Client) -> Account:
    """All that the witness on the scheduler of this client has seen until now."""
    found: Any = client.run_on_scheduler(_account)
    return found


def _account(dask_scheduler: Scheduler) -> Account:
    witness: Any = dask_scheduler.plugins["witness"]
    return witness.account
