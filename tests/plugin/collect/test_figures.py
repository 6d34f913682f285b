"""What is read of groups in few grasps, beside what Dask's own names say."""

from collections import Counter
from typing import Any

import pytest
from dask.utils import key_split
from distributed import wait

from daskscope import wire
from daskscope.collect.figures import Tracked, action_us, is_done, look, table
from tests.plugin.rig import Cluster, boom, group_rows, inc

pytestmark = pytest.mark.asyncio


def plainly(group: Any, tracked: Tracked) -> dict[str, Any]:
    """By the public names, one after the other."""
    return {
        "no": tracked.no,
        "name": group.name,
        "prefix": key_split(group.name),
        "computation": tracked.computation,
        "span": group.span_id,
        "start_ms": round(group.start * 1e3) if group.start else None,
        "stop_ms": round(group.stop * 1e3) if group.stop else None,
        "n_tasks": len(group),
        "nbytes": group.nbytes_total,
        "states": {state: n for state, n in group.states.items() if n},
        "action_us": {action: round(s * 1e6) for action, s in group.all_durations.items() if round(s * 1e6)},
        "dependencies": [],
        "types": sorted(group.types),
    }


async def test_groups_in_all_their_states_are_told_as_dask_has_them(cluster: Cluster) -> None:
    client, scheduler = cluster.client, cluster.scheduler
    done = client.map(inc, range(5))
    failed = client.map(boom, done[:2])
    await wait([*done, *failed])
    held = client.submit(inc, 10, workers=["nowhere"], key="held-1")
    (scattered,) = await client.scatter([b"x" * 1000], hash=False)
    while "held" not in scheduler.task_prefixes:
        await client.ncores()
    groups = list(scheduler.task_groups.values())
    assert len(groups) == 4
    told = [(group, Tracked(n, n, group.span_id), list[int]()) for n, group in enumerate(groups)]
    for group, tracked, _ in told:
        tracked.n_tasks, tracked.action_us = len(group), action_us(group)
        assert is_done(group) == group.done
    assert group_rows(wire.Message(
        v=1, cluster="", boot="", seq=0, made_at_ms=0, uptime_us=0, next_s=1.0, groups=table(told, Counter())
    )) == [plainly(group, tracked) for group, tracked, _ in told]  # fmt: skip
    assert {is_done(group) for group in groups} == {True, False}
    del held, scattered


async def test_whatever_changes_of_a_group_its_look_is_another(cluster: Cluster) -> None:
    client, scheduler = cluster.client, cluster.scheduler
    first = client.submit(inc, 1, key=("grow", 0))
    await wait(first)
    (group,) = scheduler.task_groups.values()
    looks = [look(group)]
    assert look(group) == looks[0]
    second = client.submit(inc, 2, key=("grow", 1))
    await wait(second)
    looks.append(look(group))
    group.nbytes_total += 1
    looks.append(look(group))
    group.add_duration("compute", 1.0, 2.0)
    looks.append(look(group))
    group.states["memory"] -= 1
    looks.append(look(group))
    group.states["memory"] += 1
    assert len(set(looks)) == 5
    assert action_us(group) == {action: round(s * 1e6) for action, s in group.all_durations.items()}


async def test_no_groups_no_columns() -> None:
    assert table([], Counter()) == wire.Groups()
