"""Computations and the code around them, of a real scheduler."""

import dask.config
import pytest
from distributed import Event, wait

from daskscope import wire
from daskscope.collect import computations as module
from daskscope.collect import groups
from tests.plugin.rig import Cluster, boom, group_rows, inc, look_at, until

pytestmark = pytest.mark.asyncio


def texts(message: wire.Message) -> str:
    return "".join(code.text for code in message.codes)


async def test_a_computation_is_told_with_the_code_that_started_it(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    await cluster.client.submit(inc, 1)  # the line that made the call
    message = look()
    (computation,) = message.computations
    ((*outer, frame),) = computation.code
    assert len(outer) <= 1, "daskscope asks Dask for two frames"
    code = {code.hash: code.text for code in message.codes}
    assert {frame.code for call in computation.code for frame in call} == code.keys()
    assert frame.file == __file__
    text = code[frame.code].splitlines()
    assert "the line that made the call" in text[frame.line_in_code - 1]
    with open(__file__) as file:  # noqa: PTH123  # the line is of the file, counted from 1
        assert "the line that made the call" in file.read().splitlines()[frame.line - 1]
    assert computation.stop_ms == group_rows(message)[0]["stop_ms"]


async def test_the_same_code_travels_once(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    first = None
    for n in range(3):
        await cluster.client.submit(inc, n)
        message = look()
        first = first or message
        if n:
            assert message.codes == []
            assert message.computations[-1].code == first.computations[0].code
    assert first is not None
    assert first.codes


async def test_with_the_switch_off_no_code_leaves(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler, code=False)
    await cluster.client.submit(inc, 1)  # canary-of-the-source
    message = look()
    assert cluster.scheduler.computations[-1].code, "Dask has it"
    assert len(message.computations) == 1
    assert message.computations[0].code == []
    assert message.codes == []
    body = wire.encode(message)
    assert b"canary-of-the-source" not in body
    assert b"test_computations.py" not in body


async def test_without_frames_there_is_no_code(cluster: Cluster) -> None:
    with dask.config.set({"distributed.diagnostics.computations.nframes": 0}):
        look = await look_at(cluster.scheduler)
        await cluster.client.submit(inc, 1)
        message = look()
    assert message.computations[0].code == []
    assert message.codes == []


async def test_a_graph_that_joins_a_running_computation_is_part_of_it(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    gate = await Event("gate")
    first = cluster.client.submit(wait_for, "gate")
    await until(lambda: cluster.scheduler.tasks)
    before = look()
    second = cluster.client.submit(inc, 1)
    await until(lambda: len(cluster.scheduler.tasks) == 2)
    during = look()
    await gate.set()
    await wait([first, second])
    after = look()
    assert [computation.no for computation in before.computations] == [0]
    assert len(before.computations[0].code) == 1
    assert [(c.no, len(c.code), c.stop_ms) for c in during.computations] == [(0, 2, None)], "its code grew"
    assert [c.no for c in after.computations] == [0]
    assert after.computations[0].stop_ms is not None
    assert after.totals.n_computations == 1
    rows = group_rows(before) + group_rows(during) + group_rows(after)
    assert {row["computation"] for row in rows} == {0}


def wait_for(name: str) -> None:
    Event(name).wait(30)


async def test_a_computation_is_told_when_it_starts_and_when_it_stops_and_no_more(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    gate = await Event("gate")
    future = cluster.client.submit(wait_for, "gate")
    await until(lambda: cluster.scheduler.tasks)
    assert [c.stop_ms for c in look().computations] == [None]
    assert look().computations == []
    await gate.set()
    await future
    (last,) = look().computations
    assert last.stop_ms is not None
    assert last.stop_ms >= last.start_ms
    assert look().computations == []


async def test_a_stop_does_not_move_while_nothing_happens(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    await wait(cluster.client.submit(boom, 1))
    assert look().computations[0].stop_ms is not None
    for _ in range(3):
        assert look().computations == []


async def test_a_computation_whose_tasks_are_known_already_stops_too(cluster: Cluster) -> None:
    """Its tasks stand in groups of the first, so that it has none of its own."""
    look = await look_at(cluster.scheduler)
    kept = cluster.client.submit(inc, 1, key=("block", 0))
    await kept
    look()
    more = cluster.client.submit(inc, 2, key=("block", 1))
    await more
    message = look()
    computation = next(c for c in message.computations if c.no == 1)
    assert computation.stop_ms is not None
    assert message.totals.n_computations == 2
    assert message.totals.n_tasks == 2
    assert group_rows(message)[0]["computation"] == 0


async def test_computations_from_before_the_watch_are_told(cluster: Cluster) -> None:
    await cluster.client.submit(inc, 1)
    await cluster.client.submit(inc, 2)
    look = await look_at(cluster.scheduler)
    assert [computation.no for computation in look.first.computations] == [0, 1]
    assert look.first.totals.n_tasks == 2


async def test_after_resend_code_and_live_computations_are_told_again(cluster: Cluster) -> None:
    look = await look_at(cluster.scheduler)
    await cluster.client.submit(inc, 1)
    first = look()
    look.watch.readers._computations.resend()
    again = look()
    assert (again.computations, again.codes) == (first.computations, first.codes)
    assert again.codes


async def test_a_long_source_is_cut_and_says_so(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CODE_BYTES", 40)
    look = await look_at(cluster.scheduler)
    await cluster.client.submit(inc, 1)
    for code in look().codes:
        head, _, note = code.text.rpartition("\n")
        assert len(head.encode()) <= 40
        assert note.startswith("# ... daskscope cut ")
        assert int(note.split()[4]) > 0


async def test_memory_of_known_code_is_bounded(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KNOWN_CODES", 1)
    look = await look_at(cluster.scheduler)
    await cluster.client.submit(inc, 1)
    await cluster.client.submit(inc, 2)
    message = look()
    assert len(look.watch.readers._computations._known_codes) == 1
    hashes = {frame.code for c in message.computations for call in c.code for frame in call}
    assert hashes == {code.hash for code in message.codes}


async def test_more_computations_than_fit_wait_their_turn(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "SNAPSHOTS_PER_READ", 2)
    look = await look_at(cluster.scheduler)
    for n in range(5):
        await cluster.client.submit(inc, n, key=f"g{n}")
    told = [[c.no for c in look().computations] for _ in range(3)]
    assert told[0] == [0, 1]
    assert look.watch.readers._computations.behind is False
    assert sorted({no for numbers in told for no in numbers}) == [0, 1, 2, 3, 4]


async def test_the_last_read_looks_at_every_computation(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "SNAPSHOTS_PER_READ", 1)
    look = await look_at(cluster.scheduler)
    for n in range(4):
        await cluster.client.submit(inc, n, key=f"g{n}")
    look()
    reader = look.watch.readers._computations
    assert reader.behind
    look.watch.readers._groups.read(last=True)
    monkeypatch.setattr(module, "MAX_SNAPSHOTS", 2)
    assert len(reader.read(2e9, last=True)[0]) == 2
    assert reader.behind
    reader.read(2e9, last=True)
    assert not reader.behind
