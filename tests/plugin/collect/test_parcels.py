"""Agents as bytes: they load where daskscope is not installed, hold no secret, and leave pickling as it was."""

from __future__ import annotations

import subprocess
import sys

import cloudpickle
import pytest

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
