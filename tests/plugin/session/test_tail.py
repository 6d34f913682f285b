"""`logs(..., follow=True)`: each line once, in order, until the cluster has ended."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import daskscope
from daskscope.session import tail
from daskscope.session.tail import INTERVAL_S, QUIET
from tests.plugin.api_server import Answer, ApiServer


def line(n: int, second: int) -> dict[str, Any]:
    return {"id": f"l{n}", "time": f"2026-11-21T08:{second // 60:02}:{second % 60:02}.000Z", "text": f"line {n}"}


class Logging:
    """A cluster that has logged so many lines more each time that it is asked, and has ended when it has no more, or
    before, with so many messages that are not in the lake: one less each time that somebody looks."""

    def __init__(self, *answers: list[dict[str, Any]], waiting: int = 0) -> None:
        self.answers, self.waiting, self.asked = list(answers), waiting, list[dict[str, str]]()

    def __call__(self, path: str, query: dict[str, str]) -> Answer:
        if path.endswith("/logs"):
            self.asked.append(query)
            return 200, {"items": self.answers.pop(0) if self.answers else [], "cursor": None}
        status = "running" if self.answers and not self.waiting else "stopped"
        self.waiting = max(self.waiting - 1, 0)
        return 200, {"status": status, "completeness": {"waiting": self.waiting}}


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept = list[float]()
    follow = tail.follow_lines
    monkeypatch.setattr("daskscope.session.lines.follow_lines", lambda *asked: follow(*asked, sleep=slept.append))
    return slept


def following(serve: Any, server: Logging, **options: Any) -> ApiServer:
    return serve(server, account="acme", **options)


def test_lines_come_once_and_in_order_and_it_ends_with_the_cluster(serve: Any, naps: list[float]) -> None:
    cluster = Logging([line(1, 0), line(2, 5)], [line(2, 5), line(3, 6)], [line(3, 6)])
    following(serve, cluster)
    told = list(daskscope.logs(7, follow=True, level="warning"))
    assert [each["id"] for each in told] == ["l1", "l2", "l3"]
    assert set(naps) == {INTERVAL_S}
    assert {query["order"] for query in cluster.asked} == {"asc"}
    assert {query["level"] for query in cluster.asked} == {"warning"}


def test_it_asks_again_for_the_last_minute_for_lines_do_not_come_in_order(serve: Any, naps: list[float]) -> None:
    cluster = Logging([line(1, 0), line(2, 90)], [line(3, 40), line(2, 90)])
    following(serve, cluster)
    assert [each["id"] for each in daskscope.logs(7, follow=True)] == ["l1", "l2", "l3"]
    assert "since" not in cluster.asked[0]
    assert cluster.asked[1]["since"] == "2026-11-21T08:00:30Z"


def test_what_was_not_in_the_lake_when_it_ended_is_waited_for(serve: Any, naps: list[float]) -> None:
    cluster = Logging(*[[]] * QUIET, [line(1, 0)], waiting=2)
    following(serve, cluster)
    assert [each["id"] for each in daskscope.logs(7, follow=True)] == ["l1"]
    assert not cluster.answers


def test_nothing_is_asked_before_the_first_line_is_wanted(serve: Any) -> None:
    cluster = Logging([line(1, 0)])
    server = following(serve, cluster)
    lines = daskscope.logs(7, follow=True)
    assert not server.asked
    assert next(lines)["id"] == "l1"
    assert isinstance(lines, Generator)
    lines.close()


def test_a_lake_tells_nothing_new(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    with (
        daskscope.connect(tmp_path, account="acme") as session,
        pytest.raises(daskscope.BadRequest, match=r"without its server, and tells nothing new: .*--tail"),
    ):
        session.logs(7, follow=True)


def test_an_interrupt_ends_it(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    follow = tail.follow_lines
    monkeypatch.setattr("daskscope.session.lines.follow_lines", lambda *asked: follow(*asked, sleep=interrupted))
    following(serve, Logging([line(1, 0)], [line(2, 1)]))
    assert [each["id"] for each in daskscope.logs(7, follow=True)] == ["l1"]
