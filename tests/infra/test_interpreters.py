import sys
from pathlib import Path

import pytest

from daskscope_infra import interpreters

OTHER = "3.12" if sys.version_info[:2] != (3, 12) else "3.13"


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and all of PATH."""
    folder = tmp_path / "on-path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_the_running_one_is_always_there(on_path: Path) -> None:
    assert interpreters.find(f"{sys.version_info.major}.{sys.version_info.minor}") == Path(sys.executable)


def test_one_on_path_that_runs_is_taken(on_path: Path) -> None:
    found = script(on_path / f"python{OTHER}", f"echo {OTHER}")
    assert interpreters.find(OTHER) == found


@pytest.mark.parametrize("text", ["exit 127", "echo 3.9"], ids=["does not run", "is another"])
def test_one_on_path_that_is_not_what_its_name_says_is_not(on_path: Path, text: str) -> None:
    script(on_path / f"python{OTHER}", text)
    assert interpreters.find(OTHER) is None


def test_one_that_pyenv_keeps_is_taken_where_its_shim_does_not_run(on_path: Path, tmp_path: Path) -> None:
    script(on_path / f"python{OTHER}", "exit 127")
    found = script(tmp_path / "kept" / "bin" / f"python{OTHER}", f"echo {OTHER}")
    versions, prefix = f"echo 3.9.1; echo {OTHER}.1", f"echo {found.parents[1]}"
    script(on_path / "pyenv", f'case "$*" in "versions --bare") {versions};; "prefix {OTHER}.1") {prefix};; esac')
    assert interpreters.find(OTHER) == found
    assert interpreters.find("3.10") is None
