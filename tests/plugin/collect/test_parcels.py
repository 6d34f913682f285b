"""Agents as bytes: they load where daskscope is not installed, hold no secret, and leave pickling as it was."""

from __future__ import annotations

import pickle
import subprocess
import sys

import cloudpickle
import pytest

from daskscope.agent.plugins import NannyAgent, WorkerAgent
from daskscope.collect.parcels import Parcels
from tests.plugin.rig import settings
from tests.plugin.worker_process import LACKS_DASKSCOPE

SAME_PYTHON = {"host": {"python": ".".join(map(str, sys.version_info[:3]))}}

LOADS = """
import pickle, sys
plugin = pickle.loads(sys.stdin.buffer.read())
assert not [name for name in sys.modules if name.partition(".")[0] == "daskscope"]
print(plugin.name, type(plugin).__module__, sorted(vars(plugin)))
"""


@pytest.mark.parametrize("nanny", [False, True])
def test_pickled_by_value_it_loads_where_daskscope_is_not_installed(nanny: bool) -> None:
    given = settings(token="dst_secret", name="my cluster")
    pickled = Parcels("c", given).of(SAME_PYTHON, nanny=nanny)
    done = subprocess.run([sys.executable, "-c", LACKS_DASKSCOPE + LOADS], input=pickled, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().startswith("daskscope-agent daskscope.agent.plugins ")
    assert b"dst_secret" not in pickled
    assert b"my cluster" not in pickled


def test_pickling_leaves_the_process_as_it_was() -> None:
    before = cloudpickle.list_registry_pickle_by_value()
    parcels = Parcels("c", settings())
    by_value = parcels.of(SAME_PYTHON, nanny=False)
    assert cloudpickle.list_registry_pickle_by_value() == before
    assert parcels.of(SAME_PYTHON, nanny=False) is by_value, "made once"
    for other in ({"host": {"python": "2.7.18"}}, {}, {"host": None}, {"host": {"python": 3}}):
        assert len(parcels.of(other, nanny=False)) < 1_000, "by reference"


def interval_s(pickled: bytes) -> float:
    """That of the profiler in the plugin."""
    return vars(pickle.loads(pickled))["_profile_interval_s"]


def test_the_more_workers_the_longer_between_two_profiles_of_one() -> None:
    parcels = Parcels("c", settings(profile_interval_s=60.0))
    found = {n: interval_s(parcels.of({}, nanny=False, n_workers=n)) for n in (0, 1, 100, 101, 200, 201, 10_000)}
    assert found == {0: 60.0, 1: 60.0, 100: 60.0, 101: 120.0, 200: 120.0, 201: 240.0, 10_000: 7_680.0}
    per_interval = [n / (interval_s(parcels.of({}, nanny=False, n_workers=n)) / 60.0) for n in range(1, 10_000, 13)]
    assert max(per_interval) <= 100
    assert len(parcels._made) == 8, "few are made"


@pytest.mark.parametrize("nanny", [False, True])
def test_where_this_daskscope_is_loaded_its_own_classes_are_used_and_left_as_they_are(nanny: bool) -> None:
    kind = NannyAgent if nanny else WorkerAgent
    before = dict(vars(kind))
    plugin = pickle.loads(Parcels("c", settings()).of(SAME_PYTHON, nanny=nanny))
    assert type(plugin) is kind
    assert dict(vars(kind)) == before, "no method was put in place of another"
