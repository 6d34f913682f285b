"""The names that users import, under both modules."""

import os
import subprocess
import sys

import pytest

import daskscope
from daskscope import analytics


def test_the_names_of_the_original_are_the_same_functions() -> None:
    for name in analytics.__all__:
        assert getattr(analytics, name) is getattr(daskscope, name)


def test_all_is_sorted_and_every_name_in_it_loads() -> None:
    assert daskscope.__all__ == sorted(daskscope.__all__)
    assert dir(daskscope) == daskscope.__all__
    for name in daskscope.__all__:
        assert getattr(daskscope, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(daskscope, "regiser")


def _fresh_python(code: str, **config: str) -> str:
    env = {**os.environ, **config, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True).stdout


def test_importing_asks_dask_for_two_frames_of_code_and_imports_nothing_heavy() -> None:
    code = (
        "import sys, daskscope, dask.config;"
        "print(dask.config.get('distributed.diagnostics.computations.nframes'),"
        " 'distributed' in sys.modules, 'httpx' in sys.modules);"
        "import distributed;"
        "print(dask.config.get('distributed.diagnostics.computations.nframes'))"
    )
    assert _fresh_python(code).split() == ["2", "False", "False", "2"]


def test_distributed_imported_first_makes_no_difference() -> None:
    code = (
        "import distributed, daskscope, dask.config;"
        "print(dask.config.get('distributed.diagnostics.computations.nframes'))"
    )
    assert _fresh_python(code).split() == ["2"]


@pytest.mark.parametrize(
    "said",
    [
        {"DASK_DASKSCOPE__ANALYTICS__COMPUTATION__CODE__TRANSMIT": "False"},
        {"DASK_DASKSCOPE__ANALYTICS__DISABLED": "True"},
        {"DASK_DASKSCOPE__ANALYTICS__DISABLED": "yes"},  # an error at register()
    ],
)
def test_where_no_code_may_leave_dask_is_not_asked_for_any(said: dict[str, str]) -> None:
    code = (
        "import daskscope, distributed, dask.config;"
        "print(dask.config.get('distributed.diagnostics.computations.nframes'))"
    )
    assert _fresh_python(code, **said).split() == ["0"]


@pytest.mark.parametrize("frames", ["5", "0"])
@pytest.mark.parametrize("order", ["distributed, daskscope", "daskscope, distributed"])
def test_a_user_s_own_number_of_frames_wins_even_if_it_is_none(order: str, frames: str) -> None:
    code = f"import {order}, dask.config; print(dask.config.get('distributed.diagnostics.computations.nframes'))"
    assert _fresh_python(code, DASK_DISTRIBUTED__DIAGNOSTICS__COMPUTATIONS__NFRAMES=frames).split() == [frames]
