"""Messages on disk between processes: what a killed scheduler left, and a folder that several write into."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import dask.config
import pytest

import daskscope
from daskscope import wire
from daskscope.compression import Encoding, decompress
from daskscope.message_file import name_of, owner_of
from daskscope.shelf import place_of
from tests.end_to_end.house import House, Process, eventually
from tests.plugin.ingest_server import Server, answers

UP, DOWN = answers(200, {"id": 1, "url": "local/clusters/1"}), answers(503)
ENVIRONMENT = {"DASK_DASKSCOPE__ANALYTICS__INTERVAL": "1s", "DASK_DASKSCOPE__TOKEN": "t"}


@contextmanager
def listening() -> Generator[tuple[Server, str]]:
    server = Server(DOWN)
    with server.running() as url:
        yield server, url


def received(server: Server) -> list[wire.Message]:
    return [
        wire.decode(decompress(body, cast("Encoding", headers["content-encoding"])))
        for _, headers, body in list(server.posts)
    ]


def seqs_on_disk(place: Path) -> dict[str, list[int]]:
    """Owner to the numbers of the messages that it left."""
    found: dict[str, list[int]] = {}
    for path in sorted(place.glob("*.msg")):
        name = name_of(path.name)
        found.setdefault(owner_of(name), []).append(int(name.split("-")[2]))
    return found


def watched(house: House, **environment: str) -> Process:
    scheduler, _ = house.scheduler("--preload", "daskscope", **(ENVIRONMENT | environment))
    return scheduler


def has(place: Path, n_owners: int, n_messages: int) -> bool:
    """Of the last owner so many."""
    found = list(seqs_on_disk(place).values())
    return len(found) >= n_owners and all(len(seqs) >= n_messages for seqs in found)


def killed_in_turn(house: House, n_kills: int, n_messages: int) -> None:
    with listening() as (server, url):
        spool = house.folder / "spool"
        place = place_of(spool, url, "t")
        configured = {"DASK_DASKSCOPE__SERVER": url, "DASK_DASKSCOPE__SPOOL": str(spool)}
        for n in range(n_kills):
            scheduler = watched(house, **configured)
            eventually(lambda n=n: has(place, n + 1, n_messages), bool)
            scheduler.stop(signal.SIGKILL)
        owed = seqs_on_disk(place)
        assert len(owed) == n_kills
        assert all(seqs == list(range(len(seqs))) for seqs in owed.values()), "none that was numbered is missing"
        server.posts.clear()
        server.answer = UP
        last = watched(house, **configured)
        eventually(lambda: owed.keys() & seqs_on_disk(place).keys(), lambda left: not left, within_s=300)
        last.stop()
        got = received(server)
    told = {f"{message.cluster}-{message.boot}": list[int]() for message in got}
    for message in got:
        told[f"{message.cluster}-{message.boot}"].append(message.seq)
    assert {owner: told.pop(owner) for owner in owed} == owed, "each once"
    ((_, of_the_last),) = told.items()
    assert sorted(of_the_last) == list(range(len(of_the_last)))
    assert got[-1].phase == "closed"
    assert list(place.iterdir()) == [], "no message, no lock, no draft"


def test_what_a_killed_scheduler_had_the_next_one_delivers(house: House) -> None:
    killed_in_turn(house, 1, 2)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_what_schedulers_killed_one_after_another_had_the_last_one_delivers(house: House) -> None:
    killed_in_turn(house, 5, 8)


@pytest.mark.long
def test_two_schedulers_write_into_a_folder_while_a_server_takes_in(house: House) -> None:
    shared = house.folder / "shared"
    server = house.start("-m", "daskscope.cli", "serve", "--port", "0", "--data", str(shared))
    url = server.line(r"(http://127\.0\.0\.1:\d+)")[1]
    schedulers = [watched(house, DASK_DASKSCOPE__SERVER=shared.as_uri()) for _ in range(2)]
    token = (shared / "token").read_text().strip()
    with dask.config.set({"daskscope.server": url, "daskscope.token": token}):
        eventually(daskscope.list_clusters, lambda found: len(found) == 2)
        for scheduler in schedulers:
            assert scheduler.stop() == 0
        ended = eventually(
            daskscope.list_clusters, lambda found: all(cluster["status"] == "stopped" for cluster in found)
        )
    assert len(ended) == 2
    assert list((shared / "spool").iterdir()) == []
    assert not [line for line in server.output if "spooled message" in line]


def test_two_schedulers_write_into_a_folder_while_it_is_imported(house: House) -> None:
    shared = house.folder / "shared"
    with listening() as (server, url):
        server.answer = UP

        def imports() -> int:
            importing = house.start(
                "-m", "daskscope.cli", "import", str(shared),
                DASK_DASKSCOPE__SERVER=url, DASK_DASKSCOPE__TOKEN="t",
            )  # fmt: skip
            code = importing.child.wait(60)
            assert code == 0, importing.output
            return len(received(server))

        fast = {"DASK_DASKSCOPE__SERVER": shared.as_uri(), "DASK_DASKSCOPE__ANALYTICS__INTERVAL": "0.1s"}
        schedulers = [watched(house, **fast) for _ in range(2)]
        eventually(lambda: has(shared / "spool", 2, 3), bool)
        n_first = imports()
        assert n_first >= 6
        eventually(lambda: has(shared / "spool", 2, 1), bool)
        for scheduler in schedulers:
            assert scheduler.stop() == 0
        assert imports() > n_first
        got = received(server)
    told: dict[str, list[int]] = {}
    for message in got:
        told.setdefault(message.boot, []).append(message.seq)
    assert [sorted(seqs) for seqs in told.values()] == [list(range(len(seqs))) for seqs in told.values()]
    assert sorted(message.phase for message in got if message.phase == "closed") == ["closed", "closed"]
    assert list((shared / "spool").iterdir()) == []
