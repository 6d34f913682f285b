"""What becomes of a report while something else happens. The rest of uploads: tests/lambdas/test_serve_reports.py."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daskscope_lambdas.embedded.uploads import PATH, Uploads
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.ports import Missing, ReportHost
from daskscope_lambdas.wiring import LocalAdapters, connect

LINK = "0123456789abcdefghijKL"
HTML = b"<!doctype html><title>report</title>"


@pytest.fixture
def world(tmp_path: Path) -> LocalAdapters:
    return connect(LocalEnv(data=str(tmp_path)))


async def bring(world: LocalAdapters, host: ReportHost, between: Callable[[], object]) -> tuple[int, str]:
    """Status, and the code of an error; `between` comes after a part of the body."""
    _, _, query = world.report_files.offer(LINK, len(HTML), world.clock.now() + 900).url.partition("?")
    parts, sent = [HTML[:9], HTML[9:]], list[dict[str, Any]]()

    async def receive() -> dict[str, Any]:
        assert parts, "it waits for what does not come"
        if len(parts) == 1:
            between()
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"method": "PUT", "path": f"{PATH}{LINK}", "query_string": query.encode()}
    await Uploads(host)(scope, {}, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(body)["error"]["code"] if body else ""


@pytest.mark.asyncio
async def test_one_that_is_deleted_while_it_comes_leaves_nothing(world: LocalAdapters) -> None:
    told = await bring(world, world.report_host, lambda: world.report_files.discard(LINK))
    assert told == (404, "not-found")
    with pytest.raises(Missing):
        world.report_files.arrived(LINK, 1)
    assert not [path for path in Path(world.lake_root).parent.glob("reports/*/*") if path.parent.name != "keys"]


@pytest.mark.asyncio
async def test_a_full_disk_is_said_to_whoever_brings_one(
    world: LocalAdapters, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    draft = world.report_host.draft

    def on_a_full_disk() -> Path:
        path = draft()
        path.unlink()
        path.symlink_to("/dev/full")
        return path

    monkeypatch.setattr(world.report_host, "draft", on_a_full_disk)
    told = await bring(world, world.report_host, lambda: None)
    assert told == (507, "no-room")
    assert "No space left" in caplog.text
    assert "Traceback" not in caplog.text
    assert list(Path(world.lake_root).parent.glob("reports/drafts/*")) == []
    monkeypatch.undo()
    assert (await bring(world, world.report_host, lambda: None))[0] == 204
