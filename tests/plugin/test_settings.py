"""Settings: each option by its key, its environment name and its limits; what cannot be used is named."""

import logging
from dataclasses import fields
from pathlib import Path
from typing import Any

import dask.config
import pytest

from daskscope import parsing
from daskscope.errors import DaskscopeError, SettingsError
from daskscope.options import OPTIONS, Option
from daskscope.settings import Settings, load


def with_option(option: Option, value: Any) -> Settings:
    with dask.config.set({f"daskscope.{option.key}": value}):
        return load()


def option(key: str) -> Option:
    return next(o for o in OPTIONS if o.key == key)


def test_the_table_and_the_settings_have_the_same_fields() -> None:
    assert [o.field for o in OPTIONS] == [f.name for f in fields(Settings) if f.name not in ("kind", "login")]
    assert len({o.key for o in OPTIONS}) == len(OPTIONS)
    assert all(o.meaning.endswith(".") for o in OPTIONS)


def test_with_nothing_configured_the_defaults_are_in_force(data: Path) -> None:
    assert load() == Settings(
        server=None, token=None, ingest_token=None, account=None, data=str(data), spool=None, name=None, tags={},
        disabled=False, interval_s=10.0, code=True, computation_interval_s=None, exceptions=True,
        events=("invalid-worker-transition", "invalid-worker-task-state", "worker-fail-hard"),
        events_interval_s=None, logs=30, profile=True, profile_interval_s=60.0, tasks=False, hardware=True,
        idle_timeout_s=None, remote_close=True, scrub=True, scrub_words=(), scrub_patterns=(), budget_pct=1.0,
    )  # fmt: skip


GOOD: dict[str, tuple[Any, Any]] = {
    "server": ("https://scope.example.org/", "https://scope.example.org"),
    "token": ("dst_abc", "dst_abc"),
    "ingest-token": ("dst_in", "dst_in"),
    "account": ("team-1", "team-1"),
    "data": ("/srv/scope", "/srv/scope"),
    "spool": ("/scratch/me/spool", "/scratch/me/spool"),
    "name": ("nightly", "nightly"),
    "tags": ({"project": "climate", "cost": 7}, {"project": "climate", "cost": "7"}),
    "analytics.disabled": (True, True),
    "analytics.interval": ("5s", 5.0),
    "analytics.computation.code.transmit": (False, False),
    "analytics.computation.interval": ("1m", 60.0),
    "analytics.exceptions.transmit": (False, False),
    "analytics.events.allow": (["*"], ("*",)),
    "analytics.events.interval": ("30s", 30.0),
    "analytics.logs.level": ("Info", 20),
    "analytics.profile.transmit": (False, False),
    "analytics.profile.interval": ("2 minutes", 120.0),
    "analytics.tasks.transmit": (True, True),
    "analytics.hardware.transmit": (False, False),
    "analytics.idle.timeout": ("20m", 1200.0),
    "analytics.remote-close": (False, False),
    "analytics.scrub.secrets": (False, False),
    "analytics.scrub.words": (["patient_id"], ("patient_id",)),
    "analytics.scrub.patterns": (["MRN-[0-9]+"], ("MRN-[0-9]+",)),
    "analytics.budget": (0.5, 0.5),
}


def test_every_option_has_a_case() -> None:
    assert GOOD.keys() == BAD.keys() == {o.key for o in OPTIONS}


@pytest.mark.parametrize("key", GOOD)
def test_yaml_sets_it(key: str) -> None:
    given, expected = GOOD[key]
    assert getattr(with_option(option(key), given), option(key).field) == expected


@pytest.mark.parametrize("key", GOOD)
def test_the_environment_sets_it(key: str) -> None:
    given, expected = GOOD[key]
    text = given if isinstance(given, str) else repr(given)
    found = dask.config.collect(paths=[], env={option(key).environment: text})
    with dask.config.set(found):
        assert getattr(load(), option(key).field) == expected


BAD: dict[str, list[Any]] = {
    "server": [
        7,
        "",
        "localhost:8790",
        "ftp://host",
        "http://",
        "http://[::1",
        "http://h:99999",
        "http://h:x",
        "h?t=1",
        "file://fileserver/shared",
        "file://",
        "file:///",
        "file:shared",
        "file:///shared?a",
    ],
    "token": [7, "", "two words", "line\n", "t\u00e9"],
    "ingest-token": [7, "", "two words"],
    "account": ["", "Team", "a b", "-x", "x" * 64, 3, "a\n"],
    "data": ["", 3],
    "spool": ["", 3, True],
    "name": ["", 3],
    "tags": ["a=b", ["a"], {"a": None}, {1: "a"}, {"a": {"b": "c"}}],
    "analytics.disabled": ["yes", 1, None],
    "analytics.interval": ["soon", "0s", 0, -1, "2 hours", None, True, float("nan"), float("inf"), [1], "99 ms"],
    "analytics.computation.code.transmit": ["on", None],
    "analytics.computation.interval": ["soon", 0, "2 hours", True],
    "analytics.exceptions.transmit": [0],
    "analytics.events.allow": ["*", None, [1], [None]],
    "analytics.events.interval": ["soon", 0, "2 hours", True],
    "analytics.logs.level": ["loud", "", 30, True, ["info"]],
    "analytics.profile.transmit": ["no"],
    "analytics.profile.interval": [None, "999 ms", "2 hours", True],
    "analytics.tasks.transmit": [1],
    "analytics.hardware.transmit": ["off"],
    "analytics.idle.timeout": ["never", 0, "999 ms", "31 days", True, float("nan")],
    "analytics.remote-close": ["no"],
    "analytics.scrub.secrets": ["yes", None],
    "analytics.scrub.words": ["patient_id", None, [1], [""], ["a b"], ["(a)"]],
    "analytics.scrub.patterns": ["MRN", None, [1], [""], ["("], ["a*"]],
    "analytics.budget": ["1%", 0, 101, True, float("nan")],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in BAD.items() for value in values])
def test_what_cannot_be_used_is_named_with_what_is_allowed(key: str, value: Any) -> None:
    with pytest.raises(SettingsError) as caught:
        with_option(option(key), value)
    error = caught.value
    assert error.key == f"daskscope.{key}"
    assert error.allowed
    may_be_secret = key in {"server", "token", "ingest-token", "analytics.scrub.patterns"}
    shown = "(not shown)" if may_be_secret else value
    assert str(error) == f"daskscope.{key} is {shown!r}; allowed: {error.allowed}."
    assert isinstance(error, DaskscopeError)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("value", ["off", "OFF", False, None])
def test_logs_are_off_however_yaml_reads_the_word(value: Any) -> None:
    assert with_option(option("analytics.logs.level"), value).logs is None


@pytest.mark.parametrize("value", ["disabled", 3, ["a"]])
def test_a_daskscope_that_is_no_mapping_is_named(value: Any) -> None:
    with dask.config.set({"daskscope": value}), pytest.raises(SettingsError, match="daskscope is"):
        load()


@pytest.mark.parametrize("value", [None, {}])
def test_an_empty_daskscope_is_the_defaults(value: Any) -> None:
    with dask.config.set({"daskscope": value}):
        assert load().interval_s == 10.0


def test_an_unknown_option_is_warned_about_with_the_one_that_was_meant(caplog: pytest.LogCaptureFixture) -> None:
    with dask.config.set({"daskscope.analytics.intervall": "5s", "daskscope.zzz": 1}):
        assert load().interval_s == 10.0
    assert sorted(record.getMessage() for record in caplog.records) == [
        "daskscope.analytics.intervall is no option; did you mean daskscope.analytics.interval?",
        "daskscope.zzz is no option.",
    ]


def test_underscores_do_for_hyphens_but_not_in_tags() -> None:
    with dask.config.set({"daskscope": {"tags": {"a_b": "c_d"}, "analytics": {"disabled": True}}}):
        assert load().tags == {"a_b": "c_d"}


def test_arguments_win_over_what_is_configured_and_none_changes_nothing() -> None:
    configured = with_option(option("name"), "from-yaml")
    assert configured.but(name=None) == configured
    assert configured.but(name="mine", tags={"a": 1}) == load().but(name="mine", tags={"a": "1"})
    with pytest.raises(SettingsError, match=r"daskscope\.account is 'No Good'"):
        configured.but(account="No Good")


def test_the_token_is_in_no_repr_and_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        found = with_option(option("token"), "dst_secret")
    assert found.token == "dst_secret"
    assert "secret" not in repr(found) + str(found) + caplog.text


def test_the_data_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(parsing.sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert parsing.default_data() == tmp_path / "daskscope"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert parsing.default_data() == tmp_path / ".local" / "share" / "daskscope"
    monkeypatch.setattr(parsing.sys, "platform", "darwin")
    assert parsing.default_data() == tmp_path / "Library" / "Application Support" / "daskscope"
    with dask.config.set({"daskscope.data": None}):
        assert load().data == str(parsing.default_data())


def test_a_data_folder_with_a_tilde_is_the_user_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert with_option(option("data"), "~/scope").data == str(tmp_path / "scope")
