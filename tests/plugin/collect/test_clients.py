"""Which of Dask's clients are processes."""

from __future__ import annotations

from typing import Any

import pytest
from distributed import Client, Queue, Variable, fire_and_forget

from daskscope.collect.clients import connected_clients
from tests.plugin.rig import Cluster, inc, look_at, until

pytestmark = pytest.mark.asyncio


async def test_holders_of_results_are_none(cluster: Cluster) -> None:
    client, scheduler = cluster.client, cluster.scheduler
    future = client.submit(inc, 1)
    await client.publish_dataset(future, name="dataset")
    await Variable("variable").set(future)
    queue: Any = await Queue("queue")
    await queue.put(future)
    fire_and_forget(future)
    await until(lambda: len(scheduler.clients) == 5)
    assert connected_clients(scheduler).keys() == {client.id}
    look = await look_at(scheduler)
    assert look().totals.n_clients == 1
    assert [member.id for member in look.first.members if member.role == "client"] == [client.id]


async def test_each_that_has_a_connection_is_one(cluster: Cluster) -> None:
    scheduler = cluster.scheduler
    async with Client(scheduler.address, asynchronous=True) as other:
        await until(lambda: len(connected_clients(scheduler)) == 2)
        assert connected_clients(scheduler) == {name: scheduler.clients[name] for name in (cluster.client.id, other.id)}
    await until(lambda: connected_clients(scheduler).keys() == {cluster.client.id})
