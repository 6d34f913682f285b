"""The functions' bundles, really made: for the Python that runs this, and for the default one if it is here."""

import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from daskscope.wire.sample import sample
from daskscope_infra import bundles, interpreters, packages, trim
from daskscope_infra.bundles import BundleError, Family, Target, build, unpacked_bytes

LIMIT_BYTES = 262_144_000
"""What Lambda takes unpacked: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
MARGIN_BYTES = 15_000_000
"""For what the next versions of pyarrow and duckdb grow by."""
LIGHT_BYTES = 60_000_000
MACHINES = {"x86_64": 62, "arm64": 183}
"""e_machine in the head of an ELF file."""

RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
HERE = Target("x86_64", RUNNING)
THERE = Target() if interpreters.find(Target().python) else Target("arm64", RUNNING)

each_target = pytest.mark.parametrize("target", [HERE, THERE], ids=str)
each_bundle = pytest.mark.parametrize(
    ("family", "target"),
    [(family, target) for family in ("light", "heavy") for target in (HERE, THERE)],
    ids=lambda value: str(value),
)


made = cache(build)


def python_of(target: Target) -> Path:
    found = interpreters.find(target.python)
    assert found
    return found


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and bytes of each file."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes()) for path in files}


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A place for bundles where light dependencies are installed already, and no more."""
    name = build("light", HERE).name.rpartition(".")[0]
    (installed,) = bundles.BUNDLES.glob(f"{name}.dependencies.{bundles._recipe('light', HERE)}")
    shutil.copytree(installed, tmp_path / installed.name, copy_function=os.link)
    return tmp_path


def program(text: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", text, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@each_bundle
def test_it_fits_into_a_function_with_room_to_grow(family: Family, target: Target) -> None:
    size = unpacked_bytes(made(family, target))
    assert size < LIMIT_BYTES - MARGIN_BYTES
    assert family == "heavy" or size < LIGHT_BYTES


@each_bundle
def test_it_holds_what_its_family_imports_and_nothing_of_dask(family: Family, target: Target) -> None:
    held = {path.name.partition(".")[0] for path in made(family, target).iterdir()}
    assert {"daskscope", "daskscope_query", "daskscope_lambdas", "boto3", "msgspec", "zstandard"} <= held
    assert ({"pyarrow", "duckdb", "jinja2"} <= held) == (family == "heavy")
    assert family == "heavy" or not {"pyarrow", "duckdb", "jinja2"} & held
    assert not {"dask", "distributed", "httpx", "numpy", "pandas", "uvicorn", "tests", "daskscope_infra", "bin"} & held


@each_bundle
def test_its_libraries_are_for_its_machine(family: Family, target: Target) -> None:
    libraries = [path for path in made(family, target).rglob("*.so*") if path.is_file()]
    assert len(libraries) > 3
    for library in libraries:
        with library.open("rb") as file:
            head = file.read(20)
        assert head[:4] == b"\x7fELF"
        assert int.from_bytes(head[18:20], "little") == MACHINES[target.architecture], library.name


BAD_BYTE_CODE = """
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path

modules = list(Path(sys.argv[1]).rglob("*.py"))
for module in modules:
    cached = Path(cache_from_source(str(module)))
    by_hash_unchecked = (0b01).to_bytes(4, "little")  # PEP 552
    head = MAGIC_NUMBER + by_hash_unchecked + source_hash(module.read_bytes())
    if not cached.exists() or cached.read_bytes()[:16] != head:
        print(module)
print(len(modules))
"""


@each_bundle
def test_every_module_has_byte_code_of_its_python_that_nobody_checks(family: Family, target: Target) -> None:
    done = subprocess.run(
        [python_of(target), "-c", BAD_BYTE_CODE, made(family, target)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    *bad, n_modules = done.stdout.split()
    assert not bad
    assert int(n_modules) > 500


@each_target
def test_its_python_takes_the_byte_code_and_not_the_source(target: Target, tmp_path: Path) -> None:
    shutil.copytree(made("light", target) / "daskscope_query", tmp_path / "daskscope_query")
    (tmp_path / "daskscope_query" / "layout.py").write_text("raise SystemExit('the source was read')")
    asked = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from daskscope_query.layout import LATE; print(LATE)"
    done = subprocess.run([python_of(target), "-S", "-c", asked], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "late/\n"), done.stderr


def test_templates_and_queries_come_with_the_code() -> None:
    folder = made("heavy", HERE)
    assert (folder / "daskscope_lambdas/web/templates/cluster.html").exists()
    assert (folder / "daskscope_query/sql/samples.sql").exists()


def test_the_sample_of_messages_comes_with_the_code() -> None:
    held = made("light", HERE) / "daskscope/wire/sample_1.json"
    assert b"".join(held.read_bytes().splitlines()) == sample()


def test_of_the_services_models_those_that_are_called_are_left() -> None:
    data = made("light", HERE) / "botocore" / "data"
    assert {path.name for path in data.iterdir() if path.is_dir()} == trim.SERVICES


def test_the_same_things_make_the_same_bytes_elsewhere(tmp_path: Path) -> None:
    again = build("light", HERE, tmp_path)
    known = build("light", HERE)
    assert again.name == known.name
    assert everything(again) == everything(known)
    assert {mode for mode, _ in everything(again).values()} == {0o100644}


def test_a_second_build_needs_no_index(other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert everything(build("light", HERE, other)) == everything(build("light", HERE))


def test_without_an_index_the_first_one_says_what_pip_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(BundleError, match=r"no matching distribution"):
        build("light", HERE, tmp_path)
    assert [path.suffix for path in tmp_path.iterdir() if path.is_dir()] == [".part"]


KILLED = """
import os, signal, sys
from pathlib import Path
from daskscope_infra.bundles import Target, build

linked, link = [], os.link

def link_a_few(source, target, **options):
    linked.append(source)
    if len(linked) == 50:
        os.kill(os.getpid(), signal.SIGKILL)
    link(source, target, **options)

os.link = link_a_few
build("light", Target(*sys.argv[2:]), Path(sys.argv[1]))
"""


def test_a_killed_build_leaves_nothing_that_looks_finished(other: Path) -> None:
    with program(KILLED, other, HERE.architecture, HERE.python) as child:
        child.communicate()
    assert child.returncode == -signal.SIGKILL
    left = {path.name for path in other.iterdir() if path.is_dir() and "dependencies" not in path.name}
    assert [name.endswith(".part") for name in left] == [True]
    assert everything(build("light", HERE, other)) == everything(build("light", HERE))
    assert not list(other.glob("*.part"))


BUILD = """
import sys
from pathlib import Path
from daskscope_infra.bundles import Target, build

print(build("light", Target(*sys.argv[2:]), Path(sys.argv[1])))
"""


def test_two_at_once_end_with_the_same_whole_bundle(other: Path) -> None:
    children = [program(BUILD, other, HERE.architecture, HERE.python) for _ in range(2)]
    said = [child.communicate() for child in children]
    assert [child.returncode for child in children] == [0, 0], said
    (folder,) = {out.strip() for out, _ in said}
    assert everything(Path(folder)) == everything(build("light", HERE))


def test_without_the_targets_python_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = "3.12" if RUNNING != "3.12" else "3.13"
    with pytest.raises(BundleError) as caught:
        build("light", Target("arm64", missing), tmp_path)
    assert f"python{missing}" in str(caught.value)
    assert "daskscope:python" in str(caught.value)
    assert RUNNING in str(caught.value)


def test_a_version_that_is_not_pinned_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pins = tmp_path / "constraints.txt"
    pins.write_text(packages.PINS.read_text().replace("six==", "six==0."))
    bundle = made("light", HERE)
    monkeypatch.setattr(packages, "PINS", pins)
    with pytest.raises(BundleError, match=r"does not say six==\d"):
        packages._check_pins(bundle)


def test_a_cut_that_cuts_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "zstandard").mkdir()
    (tmp_path / "zstandard" / "backend_cffi.py").touch()
    assert trim.trim(tmp_path) == ["zstandard/_cffi.*"]
    assert not list((tmp_path / "zstandard").iterdir())
