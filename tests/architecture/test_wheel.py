"""The built wheel in clean environments: what it brings, and that it imports on every Python we name."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
CLOSURE = """
import json, sys
from importlib.metadata import distributions, requires
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

def closure(names):
    known, rest = set(), list(names)
    while rest:
        name = canonicalize_name(rest.pop())
        if name not in known:
            known.add(name)
            wanted = map(Requirement, requires(name) or ())
            rest += [r.name for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})]
    return known

installed = {canonicalize_name(d.metadata["Name"]) for d in distributions()}
json.dump([sorted(installed), sorted(closure(["distributed", "httpx"]))], sys.stdout)
"""


def run(*command: object, **environment: str) -> str:
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")} | environment
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd="/", env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def interpreters() -> dict[str, str]:
    """Each supported version to an interpreter of it on this machine, also those that pyenv keeps."""
    found: dict[str, str] = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    kept = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin/python3.1[0-9]"))
    for version in ("3.11", "3.12", "3.13"):
        for candidate in [shutil.which(f"python{version}"), *(str(p) for p in kept if p.name == f"python{version}")]:
            if candidate and subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
                found.setdefault(version, candidate)
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(sys.executable, wheel, tmp_path_factory.mktemp("base"))


def environment(interpreter: str, wheel: Path, folder: Path, extra: str = "") -> Path:
    run(interpreter, "-m", "venv", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", f"{wheel}{extra}")
    return python


def test_base_install_brings_distributed_and_httpx_and_nothing_else(base: Path) -> None:
    installed, brought = json.loads(run(base, "-c", CLOSURE))
    assert set(installed) - {"pip", "setuptools"} == {"daskscope", *brought}
    assert not {"pyarrow", "duckdb", "boto3", "uvicorn", "numpy", "pandas"} & set(installed)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_it_imports_with_the_base_install(version: str, wheel: Path, tmp_path: Path) -> None:
    interpreter = interpreters().get(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} on this machine")
    python = environment(interpreter, wheel, tmp_path / "venv")
    program = "import daskscope, daskscope.wire; [getattr(daskscope, n) for n in daskscope.__all__]; print('all there')"
    assert run(python, "-W", "error", "-c", program) == "all there\n"
    assert run(python.with_name("daskscope"), "version") == run(python.with_name("dask"), "scope", "version")


def test_messages_are_compressed_after_the_sample_with_the_base_install(base: Path) -> None:
    program = (
        "from daskscope.compression import SAMPLED, compress, decompress; from daskscope.wire.sample import sample; "
        "body, encoding = compress(sample(), SAMPLED); "
        "print(encoding, decompress(body, encoding) == sample(), len(body) < 200)"
    )
    assert run(base, "-W", "error", "-c", program) == "daskscope-1-deflate True True\n"


def test_serve_without_its_extra_is_one_sentence(base: Path) -> None:
    done = subprocess.run([base.with_name("daskscope"), "serve"], capture_output=True, text=True, cwd="/", env={})
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pip install 'daskscope[serve]'" in done.stderr
