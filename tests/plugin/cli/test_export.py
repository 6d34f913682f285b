"""`daskscope export`: a Parquet file a list, whole or not there, and what is missing is told."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from daskscope import cli
from daskscope.cli.export import LISTS
from tests.plugin.api_server import Answer, ApiServer, error


def api(path: str, query: dict[str, str]) -> Answer:
    what = path.rpartition("/")[2]
    items = [] if what == "deaths" else [{"id": 1, "since": query.get("since")}, {"id": 2, "since": None}]
    return 200, {"items": items, "cursor": None}


def run(out: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli.scope, ["export", "--out", str(out), *arguments])


def test_each_list_is_a_file_of_its_own(server: ApiServer, tmp_path: Path) -> None:
    result = run(tmp_path / "new" / "out", "--since", "1d")
    assert (result.exit_code, result.stdout) == (0, "")
    files = {path.name: pq.read_table(path) for path in (tmp_path / "new" / "out").iterdir()}
    assert files.keys() == {f"{name}.parquet" for name in LISTS if name != "deaths"}
    assert {table.column("since")[0].as_py() for table in files.values()} == {"86400"}
    assert "clusters: 2 records in" in result.stderr
    assert "deaths: no records, no file" in result.stderr


def test_what_an_earlier_one_left_does_not_stay(server: ApiServer, tmp_path: Path) -> None:
    for name in ("clusters", "deaths"):
        (tmp_path / f"{name}.parquet").write_bytes(b"old")
    (tmp_path / "mine.txt").write_text("mine")
    assert run(tmp_path, "--only", "clusters", "--only", "deaths").exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} >= {"clusters.parquet", "mine.txt"}
    assert not (tmp_path / "deaths.parquet").exists()
    assert pq.read_table(tmp_path / "clusters.parquet").num_rows == 2


def test_a_list_that_cannot_be_had_is_named_and_the_others_are_written(serve: Any, tmp_path: Path) -> None:
    serve(lambda path, query: error(500, "server-error", "No luck.") if path.endswith("/events") else api(path, query))
    result = run(tmp_path, "--only", "events", "--only", "clusters")
    assert result.exit_code == 1
    assert "events: No luck." in result.stderr
    assert result.stderr.splitlines()[-1] == "Error: Not exported: events."
    assert (tmp_path / "clusters.parquet").exists()


def test_without_the_right_to_read_it_stops_at_once(serve: Any, tmp_path: Path) -> None:
    server = serve(lambda *_: error(403, "permission-denied", "Not yours."))
    assert run(tmp_path).exit_code == 3
    assert len(server.asked) == 1


def test_a_file_that_fails_half_way_is_not_there(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(table: Any, file: Any, **_: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    (tmp_path / "clusters.parquet").write_bytes(b"old")
    result = run(tmp_path, "--only", "clusters")
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr
    assert [(path.name, path.read_bytes()) for path in tmp_path.glob("*.p*")] == [("clusters.parquet", b"old")]


def test_a_place_that_is_none_is_said(server: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "out").exit_code == 1
    assert not server.asked
