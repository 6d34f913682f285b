import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from daskscope.testing import message
from daskscope_lambdas.embedded.schedule import scheduler_event
from daskscope_lambdas.handlers import sweep
from daskscope_lambdas.ports import Missing, StoreError
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters
from tests.lambdas.service.reporting import Reporting

Post = Callable[..., dict[str, Any]]


def test_what_a_plugin_posted_and_then_nothing(
    world: LocalAdapters, post: Post, clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    post(message())
    post(message(cluster="0" * 32), account="other")
    assert sweep.handler(scheduler_event(), None) == {"living": 2, "idle": 0, "lost": 0}
    clock.advance(20)
    post(message(cluster="0" * 32, seq=1), account="other")
    clock.advance(11)
    assert sweep.handler(scheduler_event(), None) == {"living": 1, "idle": 0, "lost": 1}
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["Cluster 1 of acme"]


def test_reports_have_their_turn_though_clusters_failed(
    world: LocalAdapters, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    reporting = Reporting(world)
    kept = reporting.kept()
    world.policies.set_wish("acme", "reports", {"public": "allow", "keep_days": 1})
    clock.advance(86_400)

    def fail() -> None:
        raise StoreError("throttled")

    monkeypatch.setattr(world.clusters, "living", fail)
    with pytest.raises(StoreError, match="throttled"):
        sweep.handler(scheduler_event(), None)
    with pytest.raises(Missing):
        world.reports.get("acme", kept.id)
    assert reporting.files() == []


def test_the_event_is_a_call_and_nothing_more(world: LocalAdapters):
    assert sweep.handler({}, None) == {"living": 0, "idle": 0, "lost": 0}


def test_a_function_of_the_light_family_imports_nothing_heavy():
    heavy = ["pyarrow", "duckdb", "numpy", "pandas", "distributed", "aws_lambda_powertools.event_handler"]
    code = f"import sys, daskscope_lambdas.handlers.sweep; print([m for m in {heavy} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
