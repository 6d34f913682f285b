"""All readers together: one that fails is left out and counted, the others and the workload go on."""

import logging
from typing import Any

import pytest

from daskscope import readers as module
from daskscope import wire
from tests.plugin.rig import Cluster, inc, look_at, until

pytestmark = pytest.mark.asyncio

PARTS = [
    *("identity", "groups", "computations", "spans", "exceptions", "failures", "events", "workers", "deaths"),
    *("members", "logs", "profiles", "totals"),
]


@pytest.mark.parametrize("part", PARTS)
async def test_a_reader_that_raises_is_left_out_and_counted_and_the_workload_goes_on(
    cluster: Cluster, part: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("the reader is broken")

    look = await look_at(cluster.scheduler)
    if part == "identity":
        look.watch.readers.want_identity()
        monkeypatch.setattr(module, "read_identity", fails)
    else:
        monkeypatch.setattr(getattr(look.watch.readers, f"_{part}"), "read", fails)
    assert await cluster.client.gather(cluster.client.map(inc, range(3))) == [1, 2, 3]
    inbox_message = look.watch._message("running", None)
    assert inbox_message.lost == {f"unreadable-{part}": 1}
    if part != "identity":
        again = look.watch._message("running", None)
        assert again.lost == {f"unreadable-{part}": 2}, "a running total"
    assert wire.decode(wire.encode(inbox_message)) == inbox_message
    if part != "workers":
        assert inbox_message.workers.address == [cluster.workers[0].address], "the others are not held up"
    if part != "groups":
        assert inbox_message.totals.n_tasks == 3
    warnings = [r.getMessage() for r in caplog.records if "daskscope could not read" in r.getMessage()]
    assert warnings == [f"daskscope could not read {part}, the workload goes on: RuntimeError: the reader is broken"], (
        "once a minute at most"
    )


async def test_running_totals_do_not_go_back_while_the_totals_cannot_be_read(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("the reader is broken")

    look = await look_at(cluster.scheduler)
    await until(lambda: all(state.metrics.get("memory") for state in cluster.scheduler.workers.values()))
    before = look().totals
    assert min(before.thread_us, before.peak_memory_bytes, before.peak_workers) > 0
    with monkeypatch.context() as patch:
        patch.setattr(look.watch.readers._totals, "read", fails)
        for _ in range(2):
            during = look.watch._message("running", None).totals
            assert (during.thread_us, during.peak_memory_bytes, during.peak_workers) == (
                before.thread_us, before.peak_memory_bytes, before.peak_workers,
            )  # fmt: skip
    after = look.watch._message("running", None).totals
    assert after.thread_us >= before.thread_us
    assert after.n_workers == 1


async def test_warnings_come_again_after_a_minute(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    look = await look_at(cluster.scheduler)

    class Clock:
        now_s = 1e6

        def monotonic(self) -> float:
            return self.now_s

    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    for _ in range(130):  # two minutes and ten seconds
        look.watch.readers.complain("x", RuntimeError("y"))
        clock.now_s += 1
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 3
