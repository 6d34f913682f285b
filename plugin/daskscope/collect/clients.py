"""Clients as processes: Dask keeps others among its clients that are none.

They hold results for nobody in particular: one for each published dataset, queue and variable, named like it, and
`fire-and-forget`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Scheduler
    from distributed.scheduler import ClientState


def connected_clients(scheduler: Scheduler) -> dict[str, ClientState]:
    """Id to state of those that have a connection."""
    connections = scheduler.client_comms
    return {name: client for name, client in scheduler.clients.items() if name in connections}
