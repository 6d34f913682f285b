"""`config()`: what is in force, and the file, variable or call that said so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask.config
import pytest

import daskscope
from daskscope.configuration import DEFAULT, IMPORT, NFRAMES, PROCESS, destination
from daskscope.discovery import rendezvous
from daskscope.display import HIDDEN
from daskscope.errors import SettingsError
from daskscope.options import OPTIONS
from daskscope.settings import load


def row(key: str) -> dict[str, Any]:
    (found,) = (each for each in daskscope.config() if each["key"] == key)
    return found


def said(key: str) -> tuple[Any, str]:
    found = row(f"daskscope.{key}")
    return found["value"], found["source"]


class Places:
    """Files and variables as Dask would have read them when this process started."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch
        monkeypatch.setattr(dask.config, "paths", [str(folder / "site"), str(folder / "user")])

    def file(self, name: str, text: str) -> str:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def variable(self, name: str, value: str) -> None:
        self._monkeypatch.setenv(name, value)

    def read(self) -> dask.config.set:
        env = {name: value for name, value in os.environ.items() if name.startswith("DASK_DASKSCOPE")}
        return dask.config.set(dask.config.collect(paths=dask.config.paths, env=env))


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places(tmp_path, monkeypatch)


def test_every_option_stands_there_with_its_default() -> None:
    rows = {each["key"]: each for each in daskscope.config()}
    for option in OPTIONS:
        found = rows[f"daskscope.{option.key}"]
        assert (found["environment"], found["meaning"]) == (option.environment, option.meaning)
        if option.key != "data":
            assert (found["value"], found["source"], found["problem"]) == (option.default, DEFAULT, "")


def test_each_place_is_named_and_the_later_one_wins(places: Places) -> None:
    site = places.file("site/10.yaml", "daskscope: {name: site, account: a, analytics: {interval: 5s, disabled: true}}")
    user = places.file("user/daskscope.yaml", "daskscope: {account: b, analytics: {interval: 6s}}")
    places.file("user/readme.txt", "daskscope: {account: nobody}")
    places.variable("DASK_DASKSCOPE__ANALYTICS__INTERVAL", "7s")
    places.variable("DASK_DASKSCOPE__ANALYTICS__REMOTE_CLOSE", "False")
    with places.read(), dask.config.set({"daskscope.analytics.disabled": False}):
        assert said("name") == ("site", site)
        assert said("account") == ("b", user)
        assert said("analytics.interval") == ("7s", "DASK_DASKSCOPE__ANALYTICS__INTERVAL")
        assert said("analytics.remote-close") == (False, "DASK_DASKSCOPE__ANALYTICS__REMOTE_CLOSE")
        assert said("analytics.disabled") == (False, PROCESS)
        assert said("analytics.tasks.transmit") == (False, DEFAULT)


def test_tags_come_from_all_that_say_some(places: Places) -> None:
    user = places.file("user/a.yaml", "daskscope: {tags: {team: x, stage: old}}")
    places.variable("DASK_DASKSCOPE__TAGS", "{'stage': 'new'}")
    with places.read():
        assert said("tags") == ({"team": "x", "stage": "new"}, f"{user}, DASK_DASKSCOPE__TAGS")


def test_a_whole_tree_in_one_variable_and_an_inherited_configuration_are_named(places: Places) -> None:
    places.variable("DASK_DASKSCOPE", "{'name': 'one'}")
    inherited = dask.config.serialize({"daskscope": {"account": "parent", "name": "parent"}})
    places.variable("DASK_INTERNAL_INHERIT_CONFIG", inherited)
    with dask.config.set({"daskscope.name": "one", "daskscope.account": "parent"}):
        assert said("name") == ("one", "DASK_DASKSCOPE")
        assert said("account") == ("parent", "DASK_INTERNAL_INHERIT_CONFIG")


@pytest.mark.parametrize("key", ["token", "ingest-token"])
def test_tokens_and_passwords_are_not_shown(key: str) -> None:
    with dask.config.set({f"daskscope.{key}": "dst_secret", "daskscope.server": "https://h:1"}):
        rows = daskscope.config()
        told = json.dumps(rows) + repr(rows) + rows._repr_html_() + destination(load())
        assert row(f"daskscope.{key}")["value"] == HIDDEN
    with dask.config.set({"daskscope.server": "https://ann:dst_secret@h:1"}):
        told += json.dumps(daskscope.config())
    assert "dst_secret" not in told


@pytest.mark.parametrize(
    "server",
    [
        "https://ann:dst_secret@h:1", "http://ann:dst/secret@h:1", "http://ann:dst@secret@h", "ann:secret@h:8790",
        "https://h/?token=secret", "https://h/#secret", "https://ann:secret", "http:\\\\ann:secret@h",
        ["http://ann:secret@h"], "http://h/\nsecret",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_shown_nowhere(server: Any) -> None:
    with dask.config.set({"daskscope.server": server}):
        with pytest.raises(
            SettingsError, match=r"daskscope\.server is '\(not shown\)'; allowed: http://HOST"
        ) as caught:
            load()
        rows = [each for each in daskscope.config() if each["key"].startswith("daskscope.server")]
    assert {each["value"] for each in rows} == {HIDDEN}
    shown = [caught.value, repr(caught.value), vars(caught.value), caught.value.__context__]
    assert "secret" not in "".join(map(str, [*shown, *(each["value"] for each in rows)]))


def test_an_address_that_can_be_used_is_shown() -> None:
    with dask.config.set({"daskscope.server": "https://h:1/below"}):
        assert said("server") == ("https://h:1/below", PROCESS)


@pytest.mark.parametrize("scrubs", [True, False])
def test_other_values_are_shown_without_what_looks_like_a_secret(scrubs: bool) -> None:
    url = "postgresql://ada:hunter2@db"
    ours = {"token": "dst_secret", "name": "by dst_secret", "account": "dst_secret", "data": f"/home/{url}",
            "tags": {"team": "x", "n": 3, "password": "hunter2", "dsn": url},
            "analytics.events.allow": ["plain", url], "analytics.scrub.secrets": scrubs}  # fmt: skip
    with dask.config.set({f"daskscope.{key}": value for key, value in ours.items()}):
        told = json.dumps(daskscope.config())
        assert said("tags")[0] == {"team": "x", "n": 3, "password": "[secret]", "dsn": "postgresql://ada:[secret]@db"}
        assert said("name")[0] == "by [secret]"
        assert said("analytics.events.allow")[0] == ["plain", "postgresql://ada:[secret]@db"]
    assert "hunter2" not in told
    assert "dst_secret" not in told


def test_of_patterns_the_number_is_shown_and_which_cannot_be_used() -> None:
    with dask.config.set({"daskscope.analytics.scrub.patterns": ["hunter2", "MRN"]}):
        assert said("analytics.scrub.patterns") == ("(2 set)", PROCESS)
    with dask.config.set({"daskscope.analytics.scrub.patterns": ["MRN", "hunter2("]}):
        found = row("daskscope.analytics.scrub.patterns")
        with pytest.raises(SettingsError, match=r"\(number 2: missing \), unterminated") as caught:
            load()
    assert found["value"] == HIDDEN
    assert "hunter2" not in str(caught.value) + json.dumps(found)


def test_what_cannot_be_used_says_what_would_do_and_a_token_is_not_shown_there_either() -> None:
    with dask.config.set({"daskscope.analytics.interval": "soon", "daskscope.token": "dst secret"}):
        interval, token = row("daskscope.analytics.interval"), row("daskscope.token")
    assert (interval["value"], interval["problem"]) == ("soon", "allowed: a time from 100 ms to 1 hour, like '10s'")
    assert (token["value"], token["problem"]) == (HIDDEN, "allowed: a token without spaces or line breaks, or null")


def test_a_key_that_is_no_option_is_listed_without_its_value(places: Places) -> None:
    user = places.file("user/a.yaml", "daskscope: {tokn: dst_secret, zzzz: 1}")
    with places.read():
        found = row("daskscope.tokn")
        assert (found["value"], found["source"]) == (HIDDEN, user)
        assert found["problem"] == "no option; did you mean daskscope.token?"
        assert row("daskscope.zzzz")["problem"] == "no option."
        assert "dst_secret" not in json.dumps(daskscope.config())


def test_a_daskscope_that_is_no_mapping_is_an_error() -> None:
    with dask.config.set({"daskscope": "disabled"}), pytest.raises(SettingsError, match="daskscope is 'disabled'"):
        daskscope.config()


def test_of_dask_s_own_it_says_who_set_them(places: Places) -> None:
    assert (row(NFRAMES)["value"], row(NFRAMES)["source"]) == (2, IMPORT)
    user = places.file("user/a.yaml", "distributed: {diagnostics: {computations: {nframes: 5}}}")
    with places.read():
        assert (row(NFRAMES)["value"], row(NFRAMES)["source"]) == (5, user)
    with dask.config.set({"distributed.scheduler.idle-timeout": "1h"}):
        found = row("distributed.scheduler.idle-timeout")
    assert (found["value"], found["source"]) == ("1h", PROCESS)


def test_where_reports_would_go_is_said_with_how_it_was_found(data: Path) -> None:
    assert destination(load()).startswith("No server is set and none runs on this machine")
    assert str(data / "spool") in destination(load())
    with dask.config.set({"daskscope.server": "file:///shared/folder"}):
        assert destination(load()) == (
            "Clusters registered here keep their messages in the folder /shared/folder, as daskscope.server says."
        )
    with dask.config.set({"daskscope.server": "https://h", "daskscope.token": "dst_secret"}):
        assert destination(load()) == (
            "Clusters registered here report to https://h, as daskscope.server says, with the token of daskscope.token."
        )
    with dask.config.set({"daskscope.server": "https://h", "daskscope.ingest-token": "dst_in"}):
        assert destination(load()).endswith("with the token of daskscope.ingest-token.")
    with dask.config.set({"daskscope.server": "https://h"}):
        assert destination(load()).endswith("with no token.")
    with dask.config.set({"daskscope.analytics.disabled": True}):
        assert destination(load()) == "Nothing is sent: daskscope.analytics.disabled is true."


def test_a_server_that_runs_here_is_named_with_its_file(data: Path) -> None:
    file = rendezvous(data, 8790)
    file.parent.mkdir(parents=True)
    file.touch(0o600)
    url = "http://127.0.0.1:8790"
    found = {"url": url, "token": "dst_all", "ingest_token": "dst_in", "pid": os.getpid(), "data": str(data)}
    file.write_text(json.dumps(found))
    assert destination(load()) == (
        f"Clusters registered here report to {url}, found by {file}, with the token that the server on this machine "
        "lends."
    )


def test_a_process_of_its_own_finds_what_its_user_wrote(tmp_path: Path) -> None:
    """As a user meets it: their file, their variable, the command."""
    config = tmp_path / "dask"
    config.mkdir()
    (config / "daskscope.yaml").write_text("daskscope: {name: mine, analytics: {interval: 5s}}")
    env = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    env |= {"DASK_CONFIG": str(config), "HOME": str(tmp_path), "DASK_DASKSCOPE__ANALYTICS__INTERVAL": "20s"}
    command = [sys.executable, "-m", "daskscope.cli", "config", "--json"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    sources = {each["key"]: (each["value"], each["source"]) for each in told["settings"]}
    assert sources["daskscope.name"] == ("mine", str(config / "daskscope.yaml"))
    assert sources["daskscope.analytics.interval"] == ("20s", "DASK_DASKSCOPE__ANALYTICS__INTERVAL")
    assert sources["daskscope.data"] == (str(tmp_path / ".local" / "share" / "daskscope"), DEFAULT)
    assert told["destination"].startswith("No server is set")
