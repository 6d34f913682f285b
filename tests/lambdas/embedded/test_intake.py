"""Out of a folder of messages into the queue: whatever lies there, all that are messages get in."""

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daskscope import testing, wire
from daskscope.compression import compress, decompress
from daskscope.message_file import SUFFIXES
from daskscope_lambdas.embedded import intake as module
from daskscope_lambdas.embedded.intake import Intake

Event = dict[str, Any]


class Ingest:
    """Remembers what was posted and answers with the status that the body is, else 200."""

    def __init__(self) -> None:
        self.taken = list[str]()
        self.before: Callable[[], None] = lambda: None

    def __call__(self, event: Event, _context: object) -> Event:
        assert event["headers"]["content-type"] == wire.CONTENT_TYPE
        assert event["headers"]["authorization"] == "Bearer token"
        self.before()
        body = base64.b64decode(event["body"]).decode()
        self.taken.append(body)
        status = int(body) if body.isdigit() else 200
        return {"statusCode": status, "body": json.dumps({"error": {"message": f"it is {body}"}})}


def rounds(intake: Intake, n: int = 1) -> None:
    for _ in range(n):
        while intake.take():
            pass


def lay(folder: Path, **bodies: str) -> None:
    for name, body in bodies.items():
        (folder / f"{name}.zst.msg").write_text(body)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def ingest() -> Ingest:
    return Ingest()


def test_what_cannot_be_read_or_is_refused_keeps_nothing_back(
    tmp_path: Path, ingest: Ingest, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "0.zst.msg").mkdir()
    os.mkfifo(tmp_path / "1.zst.msg")
    (tmp_path / "2.zst.msg").symlink_to(tmp_path / "secret")
    lay(tmp_path, **{"3": "500", "4": "401", "5": "good"})
    rounds(Intake(tmp_path, ingest, "token"), 3)
    assert ingest.taken == ["500", "401", "good", "500", "401", "500", "401"]
    assert names(tmp_path) == [*(f"{n}.zst.msg" for n in range(5)), "secret"]
    assert [caplog.text.count(f"{n}.zst.msg") for n in range(5)] == [1] * 5, "one word of each"


def test_what_is_no_message_is_set_aside_and_what_is_of_a_deleted_cluster_goes(
    tmp_path: Path, ingest: Ingest, caplog: pytest.LogCaptureFixture
):
    lay(tmp_path, a="422", b="410", c="good")
    rounds(Intake(tmp_path, ingest, "token"), 2)
    assert ingest.taken == ["422", "410", "good"]
    assert names(tmp_path) == ["a.zst.bad"]
    assert "it is 422" in caplog.text


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, ingest: Ingest):
    (tmp_path / "a.gz.msg").touch()
    os.truncate(tmp_path / "a.gz.msg", 1 << 40)
    lay(tmp_path, b="good")
    rounds(Intake(tmp_path, ingest, "token"))
    assert (ingest.taken, names(tmp_path)) == (["good"], ["a.gz.bad"])


def test_what_is_too_much_for_one_body_goes_in_parts(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    message = testing.message(events=[testing.event(no=n, topic=os.urandom(200).hex()) for n in range(40)])
    body, encoding = compress(wire.encode(message), ())
    (tmp_path / f"{message.cluster}-{message.boot}-00000000{SUFFIXES[encoding]}").write_bytes(body)
    taken = list[wire.Message]()

    def ingest(event: Event, _context: object) -> Event:
        posted = base64.b64decode(event["body"])
        if len(posted) > len(body) // 2:
            return {"statusCode": 413, "body": json.dumps({"error": {"message": "too large"}})}
        taken.append(wire.decode(decompress(posted, event["headers"]["content-encoding"])))
        return {"statusCode": 200, "body": "{}"}

    rounds(Intake(tmp_path, ingest, "token"))
    assert sorted(event.no for part in taken for event in part.events) == list(range(40))
    assert taken[-1].part == 0
    assert (names(tmp_path), caplog.text) == ([], "")


def test_what_cannot_be_removed_is_taken_once_and_said_once(
    tmp_path: Path, ingest: Ingest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """As in a folder with the sticky bit, of a file of somebody else's."""

    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(1, "Operation not permitted")

    lay(tmp_path, a="theirs")
    intake = Intake(tmp_path, ingest, "token")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        rounds(intake, 3)
    assert ingest.taken == ["theirs"]
    assert caplog.text.count("cannot be removed") == 1


def test_a_long_queue_is_taken_a_few_at_a_time_and_held_a_few_at_a_time(
    tmp_path: Path, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "BATCH", 20)
    monkeypatch.setattr(module, "SLICE", 5)
    lay(tmp_path, **{f"{n:03d}": f"m{n}" for n in range(100)})
    intake = Intake(tmp_path, ingest, "token")
    for n in range(1, 21):
        assert intake.take()
        assert len(ingest.taken) == 5 * n
        assert len(intake._waiting) < 20
    assert not intake.take()
    assert names(tmp_path) == []


def test_a_server_in_trouble_is_not_asked_for_each_of_many(
    tmp_path: Path, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "SLICE", 5)
    monkeypatch.setattr(module, "MAX_REFUSED", 10)
    lay(tmp_path, **{f"{n:03d}": "503" for n in range(100)})
    intake = Intake(tmp_path, ingest, "token")
    rounds(intake, 2)
    assert len(ingest.taken) == 20
    assert len(names(tmp_path)) == 100


def test_two_servers_lose_nothing(tmp_path: Path, ingest: Ingest):
    lay(tmp_path, a="one", b="422", c="three")
    other = Ingest()
    ingest.before = lambda: rounds(Intake(tmp_path, other, "token"))
    rounds(Intake(tmp_path, ingest, "token"))
    assert (ingest.taken, other.taken) == (["one"], ["one", "422", "three"])
    assert names(tmp_path) == ["b.zst.bad"]


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path, ingest: Ingest):
    assert not Intake(tmp_path / "nowhere", ingest, "token").take()
