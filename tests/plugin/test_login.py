"""The file that `daskscope login` keeps: as Dask reads it, for nobody else, whole or not at all."""

import os
import stat
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


def in_force(folder: Path) -> settings.Settings:
    with dask.config.set(dask.config.collect(paths=[str(folder)], env={})):
        return settings.load()


def test_what_is_kept_is_what_is_in_force_and_nobody_else_may_read_it(folder: Path) -> None:
    assert login.kept() is None
    login.keep(ANN)
    found = in_force(folder)
    assert (found.login_server, found.login_token, found.login_ingest_token) == (ANN.server, "dks_asks", "dks_in")
    assert (found.login_account, found.login_user) == ("team", "ann")
    assert login.kept() == ANN
    assert stat.S_IMODE(login.path().stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "dks_" not in repr(ANN) + repr(found)
    login.forget()
    login.forget()
    assert login.kept() is None
    assert list(folder.iterdir()) == []


def test_a_site_s_token_is_nobody_s(folder: Path) -> None:
    site = Login(server="http://127.0.0.1:8790", token="dks_site", account="local")
    login.keep(site)
    assert login.kept() == site
    assert in_force(folder).login_user is None


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


@pytest.mark.parametrize("text", ["", "[", "a: b", "daskscope: {login: []}", "daskscope: {login: {server: https://h}}"])
def test_a_file_that_is_no_login_is_named(folder: Path, text: str) -> None:
    folder.mkdir()
    login.path().write_text(text)
    with pytest.raises(SettingsError, match=login.FILE):
        login.kept()


def test_a_value_that_cannot_be_is_named_and_not_shown(folder: Path) -> None:
    folder.mkdir()
    login.path().write_text("daskscope: {login: {server: https://h, token: two words, account: a}}")
    with pytest.raises(SettingsError, match=r"daskscope\.login\.token is '\(not shown\)'"):
        login.kept()
