"""What an account wants of idle clusters is in force on those that said nothing of it themselves."""

from __future__ import annotations

import dask.config
import httpx

import daskscope
from tests.end_to_end.conftest import in_this_process
from tests.end_to_end.house import eventually
from tests.end_to_end.places import Embedded


def test_a_policy_reaches_a_running_cluster(embedded: Embedded) -> None:
    wanted = httpx.put(
        f"{embedded.url}/api/v1/{embedded.account}/policy/idle",
        json={"timeout_s": 3600},
        headers={"Authorization": f"Bearer {embedded.token}"},
        trust_env=False,
        timeout=60,
    )
    assert wanted.status_code == 200, wanted.text
    with dask.config.set(embedded.user), in_this_process() as client:
        daskscope.register(client)
        scheduler_id = client.scheduler_info()["id"]
        eventually(lambda: daskscope.get_cluster(scheduler_id)["idle_timeout"], lambda found: found == 3600)
        assert client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.idle_timeout) == 3600
