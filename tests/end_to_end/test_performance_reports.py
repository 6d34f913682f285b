"""Dask's real performance report of real work, kept by a real server, saved again, hidden and deleted."""

from __future__ import annotations

from pathlib import Path

import dask.config
import httpx
import pytest

import daskscope
from tests.end_to_end.conftest import in_this_process
from tests.end_to_end.places import Place

pytestmark = pytest.mark.timeout(600)  # the first of them deploys


def test_a_report_is_kept_shown_saved_hidden_and_deleted(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    token, _ = place.mint("read", "report")
    with dask.config.set({"daskscope.token": token}):
        with in_this_process() as client, daskscope.performance_report(title="nightly") as report:
            assert client.submit(sum, [1, 2]).result() == 3
        assert report.url
        assert report.url.startswith(f"{place.url}/{place.account}/reports/")
        assert httpx.get(report.url, trust_env=False).status_code == 200, "public: for whoever has the address"
        (kept,) = daskscope.list_performance_reports()
        assert {name: kept[name] for name in ("filename", "title", "private", "status", "url", "size")} == {
            "filename": "dask-report.html", "title": "nightly", "private": False, "status": "kept", "url": report.url,
            "size": Path(report.filename).stat().st_size,
        }  # fmt: skip
        saved = daskscope.download_performance_report(kept["id"], "again.html")
        assert saved.read_bytes() == Path(report.filename).read_bytes()
        hidden = daskscope.change_performance_report(kept["id"], private=True)
        assert (hidden["private"], hidden["url"]) == (True, f"{place.url}/{place.account}/reports/{kept['id']}")
        assert daskscope.download_performance_report(kept["id"], "again.html").stat().st_size == kept["size"]
        daskscope.delete_performance_report(kept["id"])
        with pytest.raises(daskscope.NotFound):
            daskscope.get_performance_report(kept["id"])
        Path("notes.html").write_text("Notes, and no HTML.")
        with pytest.raises(daskscope.BadRequest, match="does not begin as HTML does"):
            daskscope.upload_performance_report("notes.html")
        assert daskscope.list_performance_reports() == []
