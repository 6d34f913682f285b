"""What a shell completes: commands, options, and the numbers of clusters, by click's own protocol."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from daskscope import cli
from daskscope.cli import known
from tests.plugin.api_server import Answer, ApiServer, error

CLUSTERS = [
    {"id": 183523, "name": "nightly\x1b[2J", "status": "running"},
    {"id": 183522, "name": "etl", "status": "lost"},
    {"id": 9, "name": "old", "status": "stopped"},
]


def api(path: str, query: dict[str, str]) -> Answer:
    return 200, {"items": CLUSTERS, "cursor": None}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path / "cache" / "daskscope"


def complete(shell: str, *words: str) -> list[str]:
    """What is offered for the last word."""
    line = ["daskscope", *words]
    told = {"bash": str(len(line) - 1), "zsh": str(len(line) - 1), "fish": words[-1]}
    said = {
        "_DASKSCOPE_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(line if shell != "fish" else line[:-1]),
        "COMP_CWORD": told[shell],
    }
    return CliRunner().invoke(cli.scope, [], env=said, prog_name="daskscope").stdout.split("\n")[:-1]


def test_commands_and_options(server: ApiServer) -> None:
    assert complete("bash", "clus") == ["plain,clusters"]
    assert "plain,--since" in complete("bash", "events", "--si")
    assert "plain,--json" in complete("bash", "show", "--j")


@pytest.mark.parametrize("command", [["show"], ["status"], ["events", "--cluster"], ["logs"], ["compare", "9"]])
def test_numbers_of_clusters_where_one_is_wanted(server: ApiServer, command: list[str]) -> None:
    assert complete("bash", *command, "18") == ["plain,183523", "plain,183522"]
    assert complete("bash", *command, "l") == ["plain,latest"]


def test_other_shells_say_what_each_is(server: ApiServer) -> None:
    assert complete("zsh", "show", "18") == [
        "plain",
        "183523",
        "nightly [2J (running)",
        "plain",
        "183522",
        "etl (lost)",
    ]
    assert "183522" in "".join(complete("fish", "show", "18"))


def test_a_server_is_asked_once_a_minute(server: ApiServer, cache: Path) -> None:
    clock = 0.0

    def now() -> float:
        return clock

    assert known.offered({}, "9", now) == [("9", "old (stopped)")]
    (file,) = cache.iterdir()
    assert file.stat().st_mode & 0o077 == 0
    clock = file.stat().st_mtime + 59
    assert known.offered({}, "9", now) == [("9", "old (stopped)")]
    assert len(server.asked) == 1
    clock += 2
    assert known.offered({}, "9", now) == [("9", "old (stopped)")]
    assert len(server.asked) == 2
    assert len(list(cache.iterdir())) == 1


def test_another_account_has_its_own(server: ApiServer, cache: Path) -> None:
    complete("bash", "show", "--account", "other", "18")
    complete("bash", "show", "18")
    assert [path for path, _, _ in server.asked] == ["/api/v1/other/clusters", "/api/v1/acme/clusters"]
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("broken", ["{", "[[1]]", "\xff"])
def test_a_file_that_cannot_be_read_is_asked_anew(server: ApiServer, cache: Path, broken: str) -> None:
    complete("bash", "show", "9")
    (file,) = cache.iterdir()
    file.write_bytes(broken.encode("latin-1"))
    assert complete("bash", "show", "9") == ["plain,9"]
    assert json.loads(file.read_text())[0][0] == "183523"


def test_where_nobody_answers_a_prompt_shows_no_error(serve: Any) -> None:
    serve(lambda *_: error(401, "not-logged-in", "No token."))
    assert complete("bash", "show", "1") == [""]
    with ApiServer(api).running() as gone:
        pass
    assert complete("bash", "show", "--server", gone.url, "la") == ["plain,latest"]
    assert complete("bash", "show", "--server", "nonsense:", "la") == ["plain,latest"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    result = CliRunner().invoke(cli.scope, ["completion", shell])
    assert result.exit_code == 0
    assert f"_DASKSCOPE_COMPLETE={shell}_complete" in result.stdout
    assert CliRunner().invoke(cli.scope, ["completion", "csh"]).exit_code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_a_real_bash_completes(server: ApiServer) -> None:
    program = Path(sys.executable).with_name("daskscope")
    script = f"""
        eval "$({program} completion bash)"
        complete -p daskscope
        COMP_WORDS=(daskscope show 18) COMP_CWORD=2
        _daskscope_completion {program}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = os.environ | {"DASK_DASKSCOPE__SERVER": server.url, "DASK_DASKSCOPE__ACCOUNT": "acme"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["complete -o nosort -F _daskscope_completion daskscope", "183523", "183522"]
    assert done.stderr == ""
