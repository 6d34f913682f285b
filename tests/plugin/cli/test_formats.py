"""What programs read: JSON, a line a record, CSV, Parquet."""

import csv
import io
import json
import os
import subprocess
import sys
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from daskscope import cli
from daskscope.cli.formats import keys_of
from tests.plugin.api_server import Answer

CLUSTERS: list[dict[str, Any]] = [
    {"id": 1, "name": "=1+1", "tags": {"team": "geo"}, "lost": {}, "cost": -1.5, "stopped": None},
    {"id": 2, "name": 'a "b",\x1b[2J\nc', "tags": {}, "lost": {}, "cost": None, "is_new": True},
]


def api(path: str, query: dict[str, str]) -> Answer:
    return 200, {"items": CLUSTERS, "cursor": None}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, ["clusters", *arguments])


def test_json_lines_are_whole_records(serve: Any) -> None:
    serve()
    assert [json.loads(line) for line in run("--format", "jsonl").stdout.splitlines()] == CLUSTERS
    assert run("--format", "json").stdout == run("--json").stdout


def test_csv_keeps_to_the_rfc_and_no_cell_is_a_formula(serve: Any) -> None:
    serve()
    raw = run("--format", "csv").stdout_bytes
    assert raw.splitlines(keepends=True)[0] == b"id,name,tags,lost,cost,stopped,is_new\r\n"
    assert b"\x1b" not in raw
    rows = list(csv.DictReader(io.StringIO(raw.decode(), newline="")))
    assert rows[0] == {"id": "1", "name": "'=1+1", "tags": '{"team": "geo"}', "lost": "{}", "cost": "-1.5",
                       "stopped": "", "is_new": ""}  # fmt: skip
    assert (rows[1]["name"], rows[1]["is_new"]) == ('a "b", [2J\nc', "true")


@given(st.text())
def test_no_text_becomes_a_formula_in_a_spreadsheet(text: str) -> None:
    from daskscope.cli.formats import _cell

    assert not _cell(text).startswith(("=", "+", "-", "@", "\t", "\r"))


def test_parquet_is_what_the_records_are_as_a_data_frame(serve: Any) -> None:
    serve()
    table = pq.read_table(io.BytesIO(run("--format", "parquet").stdout_bytes))
    assert table.column("id").to_pylist() == [1, 2]
    assert table.column_names == keys_of(CLUSTERS)


def test_parquet_needs_pyarrow_and_says_so(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    serve()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("--format", "parquet")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "pip install 'daskscope[arrow]'" in result.stderr


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv", "parquet"])
def test_columns_are_chosen_in_their_order(serve: Any, form: str) -> None:
    serve()
    result = run("--columns", "name, id", "--format", form)
    if form == "parquet":
        assert pq.read_table(io.BytesIO(result.stdout_bytes)).column_names == ["name", "id"]
    elif form == "table":
        assert result.stdout.splitlines()[0].split() == ["name", "id"]
    elif form == "csv":
        assert result.stdout.splitlines()[0] == "name,id"
    else:
        first = json.loads(result.stdout)[0] if form == "json" else json.loads(result.stdout.splitlines()[0])
        assert list(first) == ["name", "id"]


def test_a_column_that_is_not_there_is_wrong_use(serve: Any) -> None:
    serve()
    result = run("--columns", "id,nome")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "There is no column nome; there are id, name," in result.stderr


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "table"])
def test_an_empty_list_is_empty_in_every_format(serve: Any, form: str) -> None:
    serve(lambda *_: (200, {"items": [], "cursor": None}))
    result = run("--format", form)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == ("[]\n" if form == "json" else "") or result.stdout.startswith("id,name,")


def test_who_reads_no_further_hears_no_complaint(serve: Any) -> None:
    server = serve(lambda *_: (200, {"items": CLUSTERS * 5_000, "cursor": None}))
    command = [sys.executable, "-m", "daskscope.cli", "clusters", "--format", "jsonl", "--limit", "10000"]
    environment = os.environ | {"DASK_DASKSCOPE__SERVER": server.url, "DASK_DASKSCOPE__ACCOUNT": "acme"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    assert process.stderr
    assert json.loads(process.stdout.readline()) == CLUSTERS[0]
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), told) == (141, b"")


def test_an_empty_list_has_the_columns_that_were_asked_for(serve: Any) -> None:
    serve(lambda *_: (200, {"items": [], "cursor": None}))
    assert run("--columns", "name,host", "--format", "csv").stdout_bytes == b"name,host\r\n"
    table = pq.read_table(io.BytesIO(run("--format", "parquet").stdout_bytes))
    assert table.column_names[:2] == ["id", "name"]
    assert str(table.schema.field("created").type) == "timestamp[us, tz=UTC]"
