"""The same end-to-end tests, the matrix of workloads among them, with the oldest Dask that pyproject.toml allows."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OLDEST = ROOT / "constraints-oldest.txt"
TESTING = ("bokeh", "pytest", "pytest-asyncio", "pytest-socket", "pytest-timeout", "hypothesis")


def test_the_oldest_environment_is_the_lower_bound() -> None:
    bound = re.search(r'"distributed>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert bound
    assert f"distributed=={bound[1]}\n" in OLDEST.read_text()


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="numpy 1.26 and pandas 2.1 of that time are for Python 3.11")
def test_end_to_end_with_the_oldest_dask(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    packages = ["-e", f"{ROOT}[serve]", "dask[array,dataframe]", "distributed", *TESTING]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-c", str(OLDEST), *packages], check=True, cwd=tmp_path)
    # That Dask's own deprecation warnings are not ours to mend.
    command = [
        python,
        "-m",
        "pytest",
        "-v",
        "-W",
        "default",
        "-m",
        "not long",
        "-k",
        "not aws",  # What deploys needs a newer world than that; the plugin meets the same server in the other half.
        "-p",
        "no:cacheprovider",
        "tests/end_to_end",
    ]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-5000:]
    ran = set(re.findall(r"^tests/end_to_end/(\w+)\.py::.* PASSED", found.stdout, re.M))
    assert {path.stem for path in (ROOT / "tests" / "end_to_end").glob("test_matrix*.py")} <= ran
