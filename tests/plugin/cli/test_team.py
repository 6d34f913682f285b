"""The commands about the work of a team: what they ask, and how they show it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from tests.plugin.api_server import Answer, ApiServer

SUMS = {"total": {"count": 4_000, "seconds": 1_040.0}, "cut": {"count": 7, "seconds": 2.5}}
STACKS = [{"prefix": None, "stack": ["main (job.py:1)"], "count": 40, "seconds": 0.4}]
PRICES = {
    "currency": "USD", "core_hour": 0.04, "name": "list\x1b prices",
    "regions": {"us-east-1": {"families": {"m6i": 0.096}, "instance_types": {"g5.xlarge": 1.006}}},
}  # fmt: skip
COMPARED: dict[str, Any] = {
    "kind": "cluster",
    "items": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
    "measures": [{"name": "duration", "unit": "seconds", "values": [1.0, 2.0]}],
}


def api(path: str, query: dict[str, str]) -> Answer:
    what = path.rpartition("/")[2]
    if what in ("prices", "compare"):
        return 200, PRICES if what == "prices" else COMPARED
    if "/computations/" in path:
        return 200, {"id": "a-1", "cluster_id": 12}
    items = STACKS if what == "profile" else [{"id": 12, "prefix": "sum", "user": "ann", "dollars": 1.25}]
    return 200, {"items": items, "cursor": None, **(SUMS if what == "profile" else {})}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, arguments)


@pytest.mark.parametrize(
    ("arguments", "path", "query"),
    [
        (["costs"], "/costs", {"since": "2592000", "by": "user"}),
        (["costs", "--by", "tag,week", "--tag", "team", "--since", "90d", "--until", "1d", "--user", "ann"], "/costs",
         {"since": "7776000", "until": "86400", "by": "tag,week", "tag": "team", "user": "ann"}),
        (["prefixes", "--sort", "bytes"], "/prefixes", {"since": "604800", "sort": "bytes"}),
        (["prefixes", "12"], "/prefixes", {"cluster": "12"}),
        (["code", "--user", "ann"], "/code", {"since": "2592000", "user": "ann"}),
        (["hardware", "f00"], "/hardware", {"since": "7776000", "code": "f00"}),
        (["metrics"], "/metrics", {"since": "604800"}),
        (["profile"], "/profile", {"since": "604800"}),
        (["profile", "--by", "user", "--prefix", "sum", "--user", "ann"], "/profile",
         {"since": "604800", "by": "user", "prefix": "sum", "user": "ann"}),
        (["profile", "12", "--since", "2026-11-21 08:00", "--until", "1m"], "/clusters/12/profile",
         {"since": "2026-11-21T08:00:00Z", "until": "60"}),
    ],
)  # fmt: skip
def test_options_reach_the_server(server: ApiServer, arguments: list[str], path: str, query: dict[str, str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    asked, told, _ = server.asked[0]
    assert (asked, {**told, "limit": ""}) == ("/api/v1/acme" + path, {**query, "limit": ""})


def test_a_profile_of_a_computation_is_asked_of_its_cluster(server: ApiServer) -> None:
    assert run("profile", "--computation", "a-1").exit_code == 0
    path, query, _ = server.asked[-1]
    assert (path, query["computation"]) == ("/api/v1/acme/clusters/12/profile", "a-1")


def test_a_profile_says_how_much_it_shows_and_goes_to_speedscope(server: ApiServer, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    result = run("profile", "12", "--speedscope", str(path))
    assert result.stdout.splitlines()[-2:] == ["0.4 of 1,040.0 s", "2.5 s in rare stacks that were left out"]
    assert json.loads(path.read_text())["profiles"][0]["weights"] == [0.4]
    assert str(path) in result.stderr


def test_a_file_that_cannot_be_written_is_one_line(server: ApiServer, tmp_path: Path) -> None:
    result = run("profile", "12", "--speedscope", str(tmp_path / "no" / "such" / "x.json"))
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert "x.json" in line
    assert "No such file or directory" in line


def test_prices_are_shown_with_where_they_are_from(server: ApiServer) -> None:
    assert run("prices").stdout.splitlines() == [
        "currency   USD",
        "core_hour  0.04",
        "name       list  prices",
        "",
        "region     machines   per_hour",
        "us-east-1  m6i.large     0.096",
        "us-east-1  g5.xlarge      1.01",
    ]
    assert json.loads(run("prices", "--json").stdout) == PRICES


def test_two_are_held_against_each_other(server: ApiServer) -> None:
    text = run("compare", "1", "2").stdout
    assert server.asked[0][:2] == ("/api/v1/acme/compare", {"ids": "1,2"})
    assert "duration" in text
    assert json.loads(run("compare", "1", "2", "--json").stdout) == COMPARED


@pytest.mark.parametrize("ids", [[], ["1"], [*map(str, range(9))]])
def test_one_alone_and_too_many_are_not_compared(server: ApiServer, ids: list[str]) -> None:
    assert run("compare", *ids).exit_code == 2
    assert not server.asked


def test_one_named_twice_is_not_compared(server: ApiServer) -> None:
    result = run("compare", "1", "1")
    assert (result.exit_code, server.asked) == (2, [])
    assert "1 to compare, each counted once" in result.stderr


def test_code_that_nobody_computed_is_not_found(serve: Any) -> None:
    serve(lambda *_: (200, {"items": [], "cursor": None}))
    result = run("hardware", "zzz\x1b")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "No computation of code 'zzz\\x1b' in the last 90 days: `daskscope code` lists" in result.stderr


@pytest.mark.parametrize(
    ("option", "text", "allowed"),
    [("--since", "gestern", True), ("--since", "2026-13-01", True), ("--until", "all", False)],
)
def test_a_time_that_is_none_is_told_in_the_words_of_a_command_line(
    server: ApiServer, option: str, text: str, allowed: bool
) -> None:
    result = run("costs", option, text)
    assert (result.exit_code, server.asked) == (2, [])
    assert f"Invalid value for '{option}': '{text}'; allowed: how far back" in " ".join(result.stderr.split())
    assert ("or 'all' for all history" in result.stderr, "None" in result.stderr) == (allowed, False)


def test_a_cost_by_cluster_names_it_and_metrics_say_of_which_kind(serve: Any) -> None:
    row = {"cluster_id": 7, "name": "etl", "context": "execute", "prefix": "sum"}
    serve(lambda *_: (200, {"items": [row], "cursor": None}))
    head, first = run("costs", "--by", "cluster,day").stdout.splitlines()
    assert (head.split()[:3], first.split()) == (["cluster_id", "name", "day"], ["7", "etl"])
    assert run("metrics").stdout.split()[:2] == ["context", "prefix"]
