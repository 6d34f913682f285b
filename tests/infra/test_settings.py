import json
import re
from dataclasses import fields

import botocore.session
import pytest

from daskscope_infra.lake_tables import BULKY, ROLLUPS, TABLES, prefix
from daskscope_infra.settings import LOG_DAYS, PREFIX, SettingError, Settings, read
from daskscope_query import layout, tables
from tests.infra.chosen import CHOSEN

KEYS = {PREFIX + field.name.replace("_", "-") for field in fields(Settings)}


def test_nothing_chosen_is_the_default() -> None:
    assert read({"aws:cdk:bundling-stacks": ["**"], "availability-zones:somewhere": []}) == Settings()


def test_every_setting_can_be_chosen() -> None:
    chosen = read(CHOSEN)
    assert set(CHOSEN) == KEYS
    assert [f.name for f in fields(Settings) if getattr(chosen, f.name) == getattr(Settings(), f.name)] == []


def test_text_from_the_command_line_says_the_same_as_json() -> None:
    text = {key: value if isinstance(value, str) else json.dumps(value) for key, value in CHOSEN.items()}
    assert read(text) == read(CHOSEN)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("name", "9lives", "a letter, then at most 63 letters, digits and dashes"),
        ("name", "a_b", "a letter"),
        ("name", "a" * 65, "at most 63"),
        ("name", "", "a letter"),
        ("name", 5, "a letter"),
        ("architecture", "amd64", "arm64, x86_64"),
        ("architecture", None, "arm64, x86_64"),
        ("python", "3.14", "3.13, 3.12, 3.11"),
        ("python", 3.13, "3.13, 3.12, 3.11, as text"),
        ("customer-key", "yes", "true, false"),
        ("customer-key", 1, "true, false"),
        ("remove-data", "", "true, false"),
        ("write-window-s", "301", "0 to 300, in seconds"),
        ("write-window-s", -1, "0 to 300"),
        ("write-window-s", "1e2", "0 to 300"),
        ("write-window-s", 1.5, "0 to 300"),
        ("write-window-s", True, "0 to 300"),
        ("log-days", "31", "30, 60"),
        ("log-days", None, "30, 60"),
        ("retention-days", "400", "like"),
        ("retention-days", '["samples"]', "like"),
        ("retention-days", "{samples: 400}", "like"),
        ("retention-days", {"samples": 29}, "30 to 36500, in days"),
        ("retention-days", {"samples": "long"}, "30 to 36500"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name(name: str, value: object, allowed: str) -> None:
    with pytest.raises(SettingError) as refused:
        read({PREFIX + name: value})
    sentence = str(refused.value)
    assert sentence.startswith(PREFIX + name)
    assert "; allowed: " in sentence
    assert allowed in sentence
    told = next(iter(value.values())) if isinstance(value, dict) else value
    assert repr(told) in sentence


@pytest.mark.parametrize("table", ["open", "sample", "colours"])
def test_retention_of_what_the_lake_has_not_is_refused(table: str) -> None:
    with pytest.raises(SettingError, match=rf"retention-days names '{table}'; allowed: .*samples.*prefixes_daily"):
        read({PREFIX + "retention-days": {table: 400}})


@pytest.mark.parametrize("key", ["daskscope:customer_key", "daskscope:Name", "daskscope:", "daskscope:stage"])
def test_a_misspelt_key_is_refused_with_those_there_are(key: str) -> None:
    with pytest.raises(SettingError, match=re.escape(key)) as refused:
        read({key: "true"})
    assert set(re.findall(r"daskscope:[a-z-]+", str(refused.value).partition("allowed: ")[2])) == KEYS


def test_days_of_logs_are_those_of_cloudwatch() -> None:
    model = botocore.session.get_session().get_service_model("logs")
    asked = model.operation_model("PutRetentionPolicy").input_shape
    assert asked is not None
    told: str = asked.members["retentionInDays"].documentation
    assert tuple(map(int, re.findall(r"\d+", told.partition("</p>")[0]))) == LOG_DAYS


def test_the_lake_has_these_tables_and_roll_ups_in_these_places() -> None:
    assert set(TABLES) == set(tables.TABLES)
    assert set(ROLLUPS) == set(tables.ROLLUPS)
    assert set(BULKY) <= set(TABLES)
    assert [prefix(name) for name in TABLES] == [f"sealed/{name}/" for name in TABLES]
    assert [prefix(name) for name in ROLLUPS] == [f"rollups/{name}/" for name in ROLLUPS]
    assert all(layout.sealed_prefix(name, "a").startswith(prefix(name)) for name in TABLES)
    assert all(layout.rollup_prefix(name, "a").startswith(prefix(name)) for name in ROLLUPS)
    with pytest.raises(ValueError, match="open"):
        prefix("open")
