"""`daskscope config`: a table of what is in force, or JSON; 2 where something cannot be used."""

import json
import re

import dask.config
import pytest
from click.testing import CliRunner, Result

from daskscope import cli, login


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, ["config", *arguments])


def keys(result: Result) -> list[str]:
    return re.findall(r"^(?:daskscope|distributed)\.[\w.-]+", result.stdout, re.M)


def test_all_of_it_is_a_table_and_a_sentence() -> None:
    result = run()
    assert (result.exit_code, result.stderr) == (0, "")
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["key", "value", "source"]
    assert "daskscope.analytics.interval" in keys(result)
    assert "distributed.diagnostics.computations.nframes" in keys(result)
    assert re.search(r"^daskscope\.analytics\.disabled +false +default$", result.stdout, re.M), "as in YAML"
    assert rows[-1].startswith("No server is set and none runs on this machine")


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("analytics.interval", ["daskscope.analytics.interval"]),
        ("daskscope.analytics.remote_close", ["daskscope.analytics.remote-close"]),
        ("analytics.profile", ["daskscope.analytics.profile.transmit", "daskscope.analytics.profile.interval"]),
        ("distributed.scheduler", ["distributed.scheduler.idle-timeout"]),
        ("name", ["daskscope.name"]),
    ],
)
def test_a_key_or_the_start_of_several(named: str, expected: list[str]) -> None:
    result = run(named)
    assert (result.exit_code, keys(result)) == (0, expected)
    assert "No server" not in result.stdout


def test_several_keys_at_once() -> None:
    assert keys(run("name", "account")) == ["daskscope.account", "daskscope.name"]


def test_a_key_that_is_none_is_wrong_use_with_the_one_that_was_meant() -> None:
    result = run("analytics.intervall")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "analytics.intervall is no option; did you mean daskscope.analytics.interval?" in result.stderr


def test_what_cannot_be_used_is_shown_and_the_exit_code_is_2() -> None:
    with dask.config.set({"daskscope.analytics.interval": "soon"}):
        table, one, other, document = run(), run("analytics.interval"), run("name"), run("--json")
    assert [result.exit_code for result in (table, one, other, document)] == [2, 2, 0, 2]
    assert "allowed: a time from 100 ms to 1 hour" in table.stdout
    assert json.loads(document.stdout)["destination"] is None


def test_a_key_that_is_no_option_is_shown_and_nothing_fails() -> None:
    with dask.config.set({"daskscope.analytics.intervall": "5s"}):
        result = run()
    assert result.exit_code == 0
    assert "no option; did you mean daskscope.analytics.interval?" in result.stdout
    assert "5s" not in result.stdout


def test_json_has_the_values_as_they_are() -> None:
    with dask.config.set({"daskscope.tags": {"a": "b"}, "daskscope.token": "dst_secret"}):
        result = run("--json")
    told = json.loads(result.stdout)
    rows = {row["key"]: row for row in told["settings"]}
    assert rows["daskscope.tags"]["value"] == {"a": "b"}
    assert rows["daskscope.analytics.disabled"]["value"] is False
    assert rows["daskscope.analytics.interval"]["environment"] == "DASK_DASKSCOPE__ANALYTICS__INTERVAL"
    assert "dst_secret" not in result.stdout + result.stderr
    assert told["destination"]


def test_a_daskscope_that_is_no_mapping_is_one_line() -> None:
    with dask.config.set({"daskscope": 3}):
        result = run()
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: daskscope is 3; allowed: a mapping")


def test_a_login_is_shown_without_its_tokens_and_said_to_be_where_clusters_report_to() -> None:
    login.keep(login.Login(server="https://h.example", token="dks_asks", ingest_token="dks_in", account="team"))
    result = run()
    assert result.stdout.splitlines()[-1] == (
        "Clusters registered here report to https://h.example (account team), where `daskscope login` was, with the "
        "token of `daskscope login`."
    )
    assert "dks_" not in result.output
