"""The file that `daskscope login` keeps: for nobody else, not even for Dask, whole or not at all."""

import base64
import json
import logging
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import dask.config
import pytest

from daskscope import login, settings
from daskscope.errors import SettingsError
from daskscope.login import Login

ANN = Login(server="https://scope.example.org", token="dks_asks", ingest_token="dks_in", account="team", user="ann")


@pytest.fixture
def folder() -> Path:
    """Dask's configuration folder."""
    return Path(dask.config.PATH)


def test_what_is_kept_is_what_is_in_force_and_nobody_else_may_read_it(folder: Path) -> None:
    assert login.kept() is None
    assert settings.load().login is None
    login.keep(ANN)
    found = settings.load()
    assert found.login == login.kept() == ANN
    assert stat.S_IMODE(login.path().stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "dks_" not in repr(ANN) + repr(found)
    login.forget()
    login.forget()
    assert login.kept() is None
    assert list(folder.iterdir()) == []


def test_what_dask_hands_on_to_other_processes_and_machines_has_none_of_it(folder: Path) -> None:
    login.keep(ANN)
    # As Dask does it: all of its configuration, for command lines (SSHCluster) and for workers of nannies.
    told = "import dask.config, daskscope.settings; print(dask.config.serialize(dask.config.global_config)); "
    told += "print(daskscope.settings.load().login.user, bool(dask.config.config))"
    env = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    command = [sys.executable, "-W", "ignore", "-c", told]
    done = subprocess.run(command, env=env | {"DASK_CONFIG": str(folder)}, capture_output=True, text=True, check=True)
    handed_on, who = done.stdout.split("\n", 1)
    assert who.split() == ["ann", "True"], "it is read by daskscope itself"
    assert "scheduler" in (whole := base64.urlsafe_b64decode(handed_on).decode())
    assert "dks_" not in whole


def test_it_does_not_travel_with_settings(folder: Path) -> None:
    login.keep(ANN)
    found = settings.load()
    assert found.login == ANN
    assert pickle.loads(pickle.dumps(found)).login is None


def test_a_site_s_token_is_nobody_s(folder: Path) -> None:
    site = Login(server="http://127.0.0.1:8790", token="dks_site", account="local")
    login.keep(site)
    assert login.kept() == site
    assert settings.load().login == site


def test_what_cannot_be_written_leaves_what_was_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    login.keep(ANN)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        login.keep(Login(server="https://other", token="dks_other", account="other"))
    assert login.kept() == ANN
    assert [path.name for path in folder.iterdir()] == [login.FILE]


def test_what_others_could_read_before_they_cannot_after(folder: Path) -> None:
    folder.mkdir()
    login.path().write_text("")
    login.path().chmod(0o644)
    login.keep(ANN)
    assert stat.S_IMODE(login.path().stat().st_mode) == 0o600


def test_where_no_file_can_be_it_is_said_before_anybody_approves(folder: Path) -> None:
    folder.write_text("a file in the folder's place")
    with pytest.raises(OSError, match=str(folder)):
        login.prepare()


@pytest.mark.parametrize("content", [b"", b"[", b"[]", b"{}", b"\xff", b'{"server": "https://h"}', b"[" * 100_000])
def test_a_file_that_is_no_login_is_named(folder: Path, content: bytes) -> None:
    folder.mkdir()
    login.path().write_bytes(content)
    with pytest.raises(SettingsError, match=login.FILE):
        login.kept()
    with pytest.raises(SettingsError, match="remove it, and log in anew"):
        settings.load()


def test_one_that_cannot_be_read_is_nobody_s_login(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    login.path().mkdir(parents=True)
    with caplog.at_level(logging.WARNING, "daskscope"):
        assert settings.load().login is None
    assert f"Ignored {login.path()}: Is a directory." in caplog.text


def test_where_dask_s_configuration_is_one_file_nobody_is_logged_in(folder: Path) -> None:
    folder.write_text("{}")
    assert settings.load().login is None


def test_a_value_that_cannot_be_is_named_and_not_shown(folder: Path) -> None:
    folder.mkdir()
    login.path().write_text(json.dumps({"server": "https://h", "token": "two words", "account": "a"}))
    with pytest.raises(SettingsError, match=r"token in .*daskscope\.login is '\(not shown\)'"):
        login.kept()
