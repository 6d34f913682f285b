"""Task groups of a real scheduler: each is told once when it changes, also those that live between two reads."""

import gc
from typing import Any

import dask.config
import pandas
import pytest
from dask import array, dataframe  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from distributed import Event, Worker, wait

from daskscope import wire
from daskscope.collect import figures
from daskscope.collect import groups as module
from daskscope.collect.groups import GroupReader
from tests.plugin.rig import Cluster, boom, group_rows, inc, look_at, running, until

pytestmark = pytest.mark.asyncio


async def forgotten(cluster: Cluster) -> None:
    """Until the scheduler has forgotten all tasks whose futures were let go."""
    gc.collect()
    await until(lambda: not cluster.scheduler.tasks)


async def test_a_finished_group_is_told_whole_and_only_once(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    futures = cluster.client.map(inc, range(5))
    await cluster.client.gather(futures)
    (row,) = group_rows(look())
    group = next(iter(cluster.scheduler.task_groups.values()))
    assert row["no"] == 0
    assert (row["name"], row["prefix"], row["n_tasks"]) == (group.name, "inc", 5)
    assert row["states"] == {"memory": 5}
    assert row["nbytes"] == group.nbytes_total > 0
    assert row["action_us"]["compute"] == round(group.all_durations["compute"] * 1e6) > 0
    assert row["start_ms"] == round(group.start * 1e3) <= row["stop_ms"] == round(group.stop * 1e3)
    assert (row["computation"], row["types"], row["dependencies"], row["span"]) == (0, ["int"], [], group.span_id)
    assert group_rows(look()) == []


async def test_a_group_that_was_forgotten_between_two_reads_is_told(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    futures = [cluster.client.submit(inc, n, key=("block-a1b2c3", n)) for n in range(7)]
    await cluster.client.gather(futures)
    del futures
    await forgotten(cluster)
    assert not cluster.scheduler.task_groups
    message = look()
    (row,) = group_rows(message)
    assert (row["name"], row["prefix"]) == ("block-a1b2c3", "block")
    assert (row["n_tasks"], row["states"]) == (7, {"forgotten": 7})
    assert row["action_us"]["compute"] > 0
    assert message.totals.n_tasks == 7
    assert look.watch.readers._groups._numbers == look.watch.readers._groups._named == {}, (
        "and nothing of it stays in memory"
    )
    assert group_rows(look()) == []


async def test_300_short_graphs_between_two_reads_are_all_counted(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    n_tasks = 0
    for n in range(300):
        futures = cluster.client.map(inc, range(n % 3 + 1), key=f"step{n}")
        await cluster.client.gather(futures)
        n_tasks += len(futures)
        del futures
    await forgotten(cluster)
    message = look()
    assert message.totals.n_computations == 300
    assert len(message.computations) == 300
    assert message.totals.n_tasks == sum(message.groups.n_tasks) == n_tasks
    assert message.totals.n_groups == len(message.groups.no) == 300
    assert message.totals.action_us["compute"] == sum(message.groups.action_us["compute"])
    look()
    assert len(look.watch.readers._computations._live) == 1, "only the last one can still grow"
    assert look.watch.readers._groups._numbers == look.watch.readers._groups._named == {}


async def test_a_group_whose_tasks_all_failed_has_no_times_and_its_computation_stops(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    futures = cluster.client.map(boom, range(3))
    await cluster.client.gather(futures, errors="skip")
    message = look()
    (row,) = group_rows(message)
    assert (row["start_ms"], row["stop_ms"], row["states"]) == (None, None, {"erred": 3})
    (computation,) = message.computations
    assert computation.stop_ms is not None
    assert computation.start_ms <= computation.stop_ms


async def test_a_running_group_is_told_as_it_goes(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    gate = await Event("gate")
    future = cluster.client.submit(wait_for, "gate")
    await until(lambda: cluster.scheduler.tasks)
    first = look()
    (row,) = group_rows(first)
    assert row["states"] == {"processing": 1}
    assert row["stop_ms"] is None
    assert first.computations[0].stop_ms is None
    await gate.set()
    await future
    last = look()
    assert group_rows(last)[0]["states"] == {"memory": 1}
    assert group_rows(last)[0]["no"] == row["no"]
    assert last.computations[0].stop_ms == group_rows(last)[0]["stop_ms"]
    assert last.totals.n_tasks == 1


def wait_for(name: str) -> None:
    Event(name).wait(30)


async def test_dependencies_are_numbers_of_other_groups(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    first = cluster.client.submit(inc, 1, key="first")
    second = cluster.client.submit(inc, first, key="second")
    third = cluster.client.submit(max, first, second, key="third")
    await third
    rows = {row["name"]: row for row in group_rows(look())}
    assert rows["first"]["dependencies"] == []
    assert rows["second"]["dependencies"] == [rows["first"]["no"]]
    assert rows["third"]["dependencies"] == sorted([rows["first"]["no"], rows["second"]["no"]])


async def test_keys_that_are_tuples_and_texts_in_one_graph(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    futures = [
        cluster.client.submit(inc, 1, key=("block-a1b2c3", 0, 1)),
        cluster.client.submit(inc, 2, key=("block-a1b2c3", 1, 0)),
        cluster.client.submit(inc, 3, key="plain"),
        cluster.client.submit(boom, 4, key=("bad", 7)),
    ]
    await cluster.client.gather(futures, errors="skip")
    message = look()
    names = {row["name"]: (row["prefix"], row["n_tasks"]) for row in group_rows(message)}
    assert names == {"block-a1b2c3": ("block", 2), "plain": ("plain", 1), "bad": ("bad", 1)}
    (family,) = message.exceptions
    assert (family.key, family.prefix, family.count) == ("('bad', 7)", "bad", 1)


async def test_keys_that_do_not_start_with_a_text(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    futures = [cluster.client.submit(boom, 1, key=(7, 2)), cluster.client.submit(inc, 1, key=(("a", "b"), 2))]
    await cluster.client.gather(futures, errors="skip")
    message = look()
    assert {row["name"] for row in group_rows(message)} == {"7", "('a', 'b')"}
    (family,) = message.exceptions
    assert family.group == next(row["no"] for row in group_rows(message) if row["name"] == "7")


async def test_scatter_makes_a_group_without_a_computation(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    data = await cluster.client.scatter([1, 2, 3])
    message = look()
    rows = group_rows(message)
    assert sum(row["n_tasks"] for row in rows) == 3
    assert {row["computation"] for row in rows} == {None}
    assert message.computations == []
    assert message.totals.n_tasks == 3
    total = cluster.client.submit(sum, data, key="total")
    await total
    more = await cluster.client.scatter({"late": 1})
    rows = {row["name"]: row["computation"] for row in group_rows(look())}
    assert (rows["total"], rows["late"]) == (0, None)
    del more


async def test_a_settled_group_that_comes_to_life_again_is_told(cluster: Cluster) -> None:
    """A worker goes with its results: done turns to not done, under the same number, and the tasks count once."""
    scheduler = cluster.scheduler
    look = await look_at(scheduler)
    async with Worker(scheduler.address, nthreads=1, name="second", dashboard=False) as second:
        future = cluster.client.submit(inc, 1, workers=["second"], allow_other_workers=True)
        await future
        (before,) = group_rows(look())
        assert before["states"] == {"memory": 1}
        await second.close()
    await until(lambda: all(task.state == "memory" for task in scheduler.tasks.values()))
    message = look()
    (after,) = group_rows(message)
    assert after["no"] == before["no"]
    assert after["action_us"]["compute"] > before["action_us"]["compute"], "it was computed a second time"
    assert message.totals.n_tasks == 1


async def test_a_name_that_comes_again_gets_a_new_number(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    numbers: list[int] = []
    for _ in range(2):
        future = cluster.client.submit(inc, 1, key="again")
        await future
        numbers += [row["no"] for row in group_rows(look())]
        del future
        await forgotten(cluster)
        look()
    assert numbers == [0, 1]


async def test_counters_never_go_back_when_the_client_restarts(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    futures = cluster.client.map(inc, range(4))
    await cluster.client.gather(futures)
    failed = cluster.client.submit(boom, 1)
    await wait(failed)
    before = look().totals
    assert (before.n_tasks, before.n_tasks_erred) == (5, 1)
    await cluster.client.restart(wait_for_workers=False)
    async with Worker(cluster.scheduler.address, nthreads=1, dashboard=False):
        assert cluster.scheduler.erred_tasks.maxlen == cluster.scheduler.computations.maxlen == 20_000
        futures = cluster.client.map(inc, range(100, 103))
        await cluster.client.gather(futures)
        after = look().totals
    assert (after.n_tasks, after.n_tasks_erred) == (8, 1)
    assert after.n_computations > before.n_computations
    assert after.action_us["compute"] > before.action_us["compute"]


async def test_many_settled_groups_are_looked_at_in_turns(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLED_PER_READ", 2)
    reader = GroupReader(cluster.scheduler)
    futures = [cluster.client.submit(inc, n, key=f"g{n}") for n in range(5)]
    await cluster.client.gather(futures)
    reader.track_others(0)
    assert len(reader.read().no) == 5
    del futures
    await forgotten(cluster)
    told = [reader.read().no for _ in range(4)]
    assert [len(numbers) for numbers in told] == [2, 2, 1, 0]
    assert sorted(number for numbers in told for number in numbers) == [0, 1, 2, 3, 4]


async def test_more_changes_than_fit_wait_their_turn_and_none_is_lost(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither those forgotten before they were told, nor those that change again behind others."""
    monkeypatch.setattr(module, "SNAPSHOTS_PER_READ", 2)
    look = await look_at(cluster.scheduler)
    futures = cluster.client.map(inc, range(5), key=[f"g{n}" for n in range(5)])  # one computation
    await cluster.client.gather(futures)
    first = look()
    assert (len(first.groups.no), first.totals.n_groups, first.totals.n_tasks) == (2, 5, 2)
    assert first.computations[0].stop_ms is None, "not before all of its groups were read"
    assert look.watch.readers._groups.behind
    del futures
    await forgotten(cluster)
    rest = [look() for _ in range(4)]
    assert [len(message.groups.no) for message in rest] == [2, 2, 1, 0]
    assert not look.watch.readers._groups.behind
    assert sorted(number for message in [first, *rest] for number in message.groups.no) == [0, 0, 1, 1, 2, 3, 4]
    latest = {row["no"]: row["states"] for message in [first, *rest] for row in group_rows(message)}
    assert latest == {number: {"forgotten": 1} for number in range(5)}
    assert rest[-1].totals.n_tasks == 5
    compute_us = {row["no"]: row["action_us"]["compute"] for m in [first, *rest] for row in group_rows(m)}
    assert rest[-1].totals.action_us["compute"] == sum(compute_us.values())
    assert look.watch.readers._groups._numbers == look.watch.readers._groups._named == {}


async def test_a_backlog_shrinks_however_large(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SNAPSHOTS_PER_READ", 1)
    reader = GroupReader(cluster.scheduler)
    futures = [cluster.client.submit(inc, n, key=f"g{n}") for n in range(80)]
    await cluster.client.gather(futures)
    reader.track_others(0)
    assert [len(reader.read().no) for _ in range(4)] == [4, 3, 3, 3], "a twentieth of what is left"


async def test_many_unfinished_groups_are_looked_at_in_turns(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ACTIVE_PER_READ", 2)
    reader = GroupReader(cluster.scheduler)
    gate = await Event("gate")
    futures = [cluster.client.submit(wait_for, "gate", key=f"g{n}") for n in range(5)]
    await until(lambda: len(cluster.scheduler.tasks) == 5)
    reader.track_others(0)
    assert len(reader.read().no) == 5
    assert reader.read().no == []
    await gate.set()
    await cluster.client.gather(futures)
    told = [number for _ in range(3) for number in reader.read().no]
    assert sorted(told) == [0, 1, 2, 3, 4]


async def test_the_last_read_looks_at_every_group(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLED_PER_READ", 1)
    reader = GroupReader(cluster.scheduler)
    futures = [cluster.client.submit(inc, n, key=f"g{n}") for n in range(5)]
    await cluster.client.gather(futures)
    reader.track_others(0)
    reader.read()
    del futures
    await forgotten(cluster)
    assert len(reader.read(last=True).no) == 5
    assert not reader.behind


async def test_groups_that_a_restart_threw_away_are_let_go(cluster: Cluster) -> None:
    reader = GroupReader(cluster.scheduler)
    futures = cluster.client.map(inc, range(3))
    await cluster.client.gather(futures)
    reader.track_others(0)
    reader.read()
    cluster.scheduler.task_groups.clear()
    reader.read()
    assert reader._numbers == reader._named == {}


async def test_after_resend_what_is_alive_is_told_again(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    futures = cluster.client.map(inc, range(3))
    await cluster.client.gather(futures)
    first = group_rows(look())
    assert group_rows(look()) == []
    look.watch.readers._groups.resend()
    assert group_rows(look()) == first
    assert look().totals.n_tasks == 3, "told again is not counted again"
    del futures


async def test_more_types_than_fit_are_cut(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    futures = [cluster.client.submit(_made, n, key=("many", n)) for n in range(30)]
    await wait(futures)
    (row,) = group_rows(look())
    assert len(row["types"]) == figures.MAX_TYPES
    assert row["types"] == sorted(row["types"])


def _made(n: int) -> object:
    return type(f"Type{n:02}", (), {})()


async def test_a_shuffle_of_a_dataframe_is_told_with_its_layers() -> None:
    """Eight partitions go through a P2P shuffle: its barrier is one task between two layers of eight."""
    frame: Any = dataframe.from_pandas(pandas.DataFrame({"a": range(80)}), npartitions=8)
    async with running(2) as cluster:
        look = await look_at(cluster.scheduler)
        with dask.config.set({"dataframe.shuffle.method": "p2p"}):
            future = cluster.client.compute(frame.shuffle("a").map_partitions(len))
            await future
        message = look()
        rows = {row["prefix"]: row for row in group_rows(message)}
        assert sum(row["n_tasks"] for row in rows.values()) == len(cluster.scheduler.tasks)
        assert all(sum(row["states"].values()) == row["n_tasks"] for row in rows.values())
        transfer, barrier = rows["shuffle-transfer"], rows["shuffle-barrier"]
        assert (transfer["n_tasks"], barrier["n_tasks"]) == (8, 1)
        assert barrier["dependencies"] == [transfer["no"]]
        (output,) = [row for row in rows.values() if barrier["no"] in row["dependencies"]]
        assert output["n_tasks"] == 8
        assert [name.rpartition(".")[2] for name in output["types"]] == ["DataFrame"]
        assert [row["states"] for row in rows.values() if "memory" in row["states"]] == [{"memory": 1}]
        (computation,) = message.computations
        assert computation.stop_ms == max(row["stop_ms"] for row in rows.values())


async def test_a_reduction_of_an_array_is_told_with_its_types(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    future = cluster.client.compute(array.ones((100,), chunks=(25,)).sum())
    assert await future == 100
    rows = group_rows(look())
    assert sum(row["n_tasks"] for row in rows) == len(cluster.scheduler.tasks)
    (first,) = [row for row in rows if not row["dependencies"]]
    assert (first["n_tasks"], first["types"]) == (4, ["numpy.ndarray"])
    (last,) = [row for row in rows if "memory" in row["states"]]
    assert (last["n_tasks"], last["states"]) == (1, {"memory": 1})
    reached, todo = {last["no"]}, [last]
    while todo:
        dependencies = todo.pop()["dependencies"]
        todo += [row for row in rows if row["no"] in set(dependencies) - reached]
        reached.update(dependencies)
    assert reached == {row["no"] for row in rows}, "its dependencies lead to all of them"


class Boundless:
    """A result whose own account of its size no column holds."""

    def __sizeof__(self) -> int:
        return (1 << 62) - 1

    def __dask_tokenize__(self) -> str:
        return "boundless"


async def test_a_size_that_no_column_holds_is_told_as_the_largest(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    held = cluster.client.map(lambda n: Boundless(), range(3), key="boundless")
    await wait(held)
    message = look()
    assert [row["nbytes"] for row in group_rows(message)] == [wire.MOST_BYTES]
    assert message.totals.held_bytes == wire.MOST_BYTES
