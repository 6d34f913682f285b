"""Every example on docs/reference/cli.md is run, against a real server, and shows what the page shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import dask.config
import pytest
from click.testing import CliRunner

from daskscope.cli import COMMANDS, scope
from tests.docs import cli_team, reference
from tests.lambdas.serving import Serving

ELSEWHERE = {
    "preview": "tests/plugin/cli/test_preview.py, with a scheduler",
    "login": "tests/end_to_end/test_login.py, with somebody in a browser",
    "logout": "tests/end_to_end/test_login.py",
}
"""Commands without an example that can be run here."""

_TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?"
_SAME = (
    (re.compile(r"\x1b\[\d+m"), ""),
    (re.compile(r"code=\w+"), "CODE"),
    (re.compile(r"(http://|/)[\w.:/-]+|\w+://\S+"), "PLACE"),
    (re.compile(rf"{_TIME}|\d{{4}}-\d\d-\d\d"), "TIME"),
    (re.compile(r"dks_[\w.]+"), "TOKEN"),
    (re.compile(r"\d{1,2} [A-Z][a-z]{2} \d{4} [\d:]+"), "TIME"),
    (re.compile(r"\b[0-9a-f]{16,}(-\d+)?\b|\b\w{12}\b"), "ID"),
    (re.compile(r"\d[\d,.]*\d|\d"), "0"),
    (re.compile(r"\b0 (ms|us|s)\b"), "0 s"),
    (re.compile(r"\b0 min( 0 s)?"), "0 min"),
    (re.compile(r"[-\s]+"), " "),
)


@dataclass
class Example:
    """What somebody types, what then stands there, and the exit code (0 unless the page says so)."""

    typed: str
    shown: list[str] = field(default_factory=list)
    code: int = 0


def examples() -> list[Example]:
    """Those of the page, in its order, for some build upon others."""
    found = list[Example]()
    for line in reference.page("cli").read_text(encoding="utf-8").partition("<!-- generated: cli -->")[0].splitlines():
        if line.startswith("    $ "):
            found.append(Example(line[6:]))
        elif found and (exit_code := re.fullmatch(r"    # exits with (\d+)", line)):
            found[-1].code = int(exit_code[1])
        elif found and line.startswith("    "):
            found[-1].shown.append(line[4:])
    return found


def shape(line: str) -> str:
    """What of a line is the same on every machine, at any time."""
    for pattern, instead in _SAME:
        line = pattern.sub(instead, line)
    return line.strip()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("cli")
    cli_team.make(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOGNAME", "ada")  # who runs the server is its first admin
        with Serving(folder) as running:
            yield running


@pytest.fixture(autouse=True)
def asked(server: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As one works who has set the server, in a folder of his own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(dask.config, "PATH", str(tmp_path / "dask"))
    (tmp_path / "outbox").mkdir()
    with dask.config.set({"daskscope": {"server": server.url, "data": str(server.shared)}}):
        yield


@pytest.fixture(scope="module")
def ids(server: Serving) -> list[tuple[str, str]]:
    """Patterns of ids on the page, and what this server has in their place."""
    (failed,) = [item for item in server.api("local/computations")["items"] if item["cluster_id"] == 2]
    return [(r"\b[0-9a-f]{24}-\d+\b", failed["id"]), (r"\b[0-9a-f]{16}\b", failed["fingerprint"])]


def lived(server: Serving, ids: list[tuple[str, str]], typed: str) -> str:
    """The command with ids of this server in place of the page's."""
    if found := re.match(r"daskscope token (revoke|rotate)", typed):  # that of the token which was made last
        return f"{found[0]} {server.api('local/tokens')['items'][-1]['key_id']}"
    for pattern, actual in ids:
        typed = re.sub(pattern, actual, typed)
    return typed


def run(typed: str) -> tuple[int, str]:
    """Exit code, and what a person would see."""
    command, _, target = typed.partition(" > ")
    program, *arguments = re.findall(r"""'[^']*'|"[^"]*"|\S+""", command)
    assert program == "daskscope"
    done = CliRunner().invoke(scope, [each.strip("'\"") for each in arguments], catch_exceptions=False)
    if target:
        Path(target).write_bytes(done.stdout_bytes)
        return done.exit_code, done.stderr
    return done.exit_code, done.output


def test_every_example_shows_what_the_page_shows(server: Serving, ids: list[tuple[str, str]]) -> None:
    wrong = list[str]()
    for each in examples():
        code, said = run(lived(server, ids, each.typed))
        lines = [line for line in said.splitlines() if line.strip()]
        if each.shown[-1:] == ["..."]:
            each.shown.pop()
            lines = lines[: len(each.shown)]
        if (code, [*map(shape, lines)]) != (each.code, [*map(shape, each.shown)]):
            wrong.append("\n    ".join([f"    $ {each.typed}", *lines, f"# exits with {code}"]))
    assert not wrong, "the page shows otherwise:\n" + "\n\n".join(wrong)


def test_every_command_has_an_example() -> None:
    shown = {each.typed.split()[1] for each in examples()}
    assert shown == COMMANDS.keys() - ELSEWHERE.keys()
