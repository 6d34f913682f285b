"""However often and by whatever way a cluster is registered: one sender a scheduler, and each message once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.end_to_end.house import House
from tests.end_to_end.processes import START, run, up

MANY_WAYS = (
    START
    + """
import importlib.util

import cloudpickle

def senders():
    return [thread for thread in threading.enumerate() if thread.name == "daskscope-sender"]

if __name__ == "__main__":
    cluster, client = begun(processes=True)
    assert len(senders()) == 1
    registered = daskscope.register(client)
    with Client(cluster) as other:
        assert daskscope.register(other).cluster == registered.cluster
    with dask.config.set({"distributed.client.preload": ["daskscope"]}), Client(cluster) as third:
        assert third.submit(int, 3).result(60) == 3
    from daskscope import scheduler_plugin
    from daskscope.settings import load
    spec = importlib.util.spec_from_file_location("another_release", scheduler_plugin.__file__)
    another = importlib.util.module_from_spec(spec)
    sys.modules["another_release"] = another
    spec.loader.exec_module(another)
    cloudpickle.register_pickle_by_value(another)
    client.register_plugin(another.Starter(load()))
    client.register_plugin(another.Starter(load()), name="under-another-name")
    assert len(senders()) == 1, senders()
    client.restart()
    assert client.submit(int, 4).result(60) == 4
    assert daskscope.register(client).cluster == registered.cluster
    assert len(senders()) == 1
    again, second = begun()
    assert len(senders()) == 2, "one for each scheduler"
    second.close()
    again.close()
    assert len(senders()) == 1
    client.close()
    cluster.close()
    assert not senders()
    cluster, client = begun()
    assert len(senders()) == 1
    client.close()
    cluster.close()
    assert not senders()
"""
)


def test_one_sender_a_scheduler_and_each_message_once(tmp_path: Path) -> None:
    with up() as place:
        done = run(tmp_path, MANY_WAYS, "", place.url, str(tmp_path))
        assert done.returncode == 0, done.stdout
        heard = place.heard()
    clusters = {message.cluster for message in heard}
    assert len(clusters) == 3
    for cluster in clusters:
        of_one = [message for message in heard if message.cluster == cluster]
        assert len({message.boot for message in of_one}) == 1
        assert [message.seq for message in of_one] == [*range(len(of_one))]
        assert of_one[-1].phase == "closed"


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_scheduler_that_comes_again_at_the_same_address_is_another_story(house: House) -> None:
    with up() as place:
        told = {"DASK_DASKSCOPE__SERVER": place.url, "DASK_DASKSCOPE__TOKEN": "t"}
        first, address = house.scheduler("--preload", "daskscope", **told)
        port = address.rpartition(":")[2]
        first.stop(signal.SIGINT)
        again = house.start(
            "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard",
            "--preload", "daskscope", **told,
        )  # fmt: skip
        again.line(r"Scheduler at:")
        again.stop(signal.SIGTERM)
        heard = place.heard()
    boots = {message.boot: message.cluster for message in heard}
    assert len(boots) == len(set(boots.values())) == 2
    for boot in boots:
        of_one = [message for message in heard if message.boot == boot]
        assert [message.seq for message in of_one] == [*range(len(of_one))]
        assert of_one[-1].phase == "closed"
