"""Every benchmark runs, at sizes too small to mean anything."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.catalog import BENCHES
from bench.page import main as fill_page
from bench.rows import Budget, Row, from_json

ROOT = Path(__file__).parents[2]
# callgrind takes a minute to start Python alone, and clusters of real processes take their time.
QUICK = sorted(BENCHES.keys() - {"instructions", "hosts", "run-report"})


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    roots = [str(ROOT / folder) for folder in (".", "plugin", "query", "lambdas", "infra")]
    path = os.pathsep.join([*roots, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def check_rows(output: str, names: list[str]) -> None:
    rows = [json.loads(line) for line in output.splitlines()]
    assert {row["name"].split("/")[0] for row in rows} == set(names)
    for row in rows:
        assert set(row) == {"name", "value", "unit", "budget", "peers", "held", "how"}
        assert row["held"] is None
        assert row["how"].endswith(".")
        assert row["value"] is None or row["value"] > 0 or row["name"].startswith(("instructions", "hosts"))
        assert all(value > 0 for value in row["peers"].values())


@pytest.mark.parametrize("names", [QUICK[::2], QUICK[1::2]], ids=["one half", "the other"])
def test_every_benchmark_prints_rows_as_json(names: list[str]) -> None:
    done = bench("--tiny", "--json", *names)
    assert done.returncode == 0, done.stderr
    check_rows(done.stdout, names)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["instructions", "run-report"])
def test_what_takes_its_time(name: str) -> None:
    done = bench("--tiny", "--json", name)
    assert done.returncode == 0, done.stderr
    check_rows(done.stdout, [name])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_hosts_are_measured() -> None:
    done = bench("--tiny", "--json", "hosts")
    assert done.returncode == 0, done.stderr
    check_rows(done.stdout, ["hosts"])


def test_rows_go_into_a_page_between_its_marks(tmp_path: Path) -> None:
    page, kept = tmp_path / "page.md", tmp_path / "rows.jsonl"
    page.write_text("before\n<!-- measured -->\nold\n<!-- end -->\nafter\n")
    missed = Row(name="poll", value=1.5, unit="ms", budget=Budget("at most", 1), peers={"other": 2.0}, how="By hand.")
    kept.write_text(json.dumps(missed.to_json()) + "\n")
    done = CliRunner().invoke(fill_page, [str(page), str(kept)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| `poll` | 1.5 ms | at most 1 (missed) | other: 2 | By hand. |" in text


@pytest.mark.parametrize("value", [1.5, 0.5, None])
def test_a_row_is_the_same_after_json(value: float | None) -> None:
    row = Row(name="poll", value=value, unit="ms", budget=Budget("at most", 1), peers={"other": 2.0}, how="By hand.")
    again = from_json(row.to_json())
    assert again.to_json() == row.to_json()


@pytest.mark.parametrize("name", ["overhead", "lake", "queries"])
def test_a_page_has_a_row_of_each_bench_that_it_names(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text()
    named = re.search(r'BENCH="--json ([a-z -]+)"', page)
    assert named is not None
    rows = set(re.findall(r"^\| `([a-z-]+)", page, re.MULTILINE))
    assert rows == set(named[1].split())


def test_table_has_a_line_a_row_under_its_heads() -> None:
    rows, done = bench("--tiny", "--json", "message-bytes"), bench("--tiny", "message-bytes")
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["name", "value", "budget", "held", "peers"]
    assert [line.split()[0] for line in lines] == [json.loads(row)["name"] for row in rows.stdout.splitlines()] != []


def test_list_names_every_benchmark() -> None:
    done = bench("--list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(BENCHES)


def test_unknown_name_is_refused_with_those_that_exist() -> None:
    done = bench("message-bites")
    assert done.returncode == 2
    assert "No benchmark message-bites" in done.stderr
    assert all(name in done.stderr for name in BENCHES)


@pytest.mark.parametrize(
    ("budget", "value", "judged", "held"),
    [
        (Budget("at most", 10), 10.0, True, True),
        (Budget("at most", 10), 10.1, True, False),
        (Budget("at least", 10), 10.0, True, True),
        (Budget("at least", 10), 9.9, True, False),
        (Budget("at most", 10), None, True, None),
        (Budget("at most", 10), 3.0, False, None),
        (None, 3.0, True, None),
    ],
)
def test_a_row_says_whether_its_budget_held(
    budget: Budget | None, value: float | None, judged: bool, held: bool | None
) -> None:
    row = Row(name="figure", value=value, unit="bytes", budget=budget, how="Counted.", judged=judged)
    assert row.held is held
    assert row.to_json()["held"] is held
