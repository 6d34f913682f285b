"""What earlier releases posted, queued and wrote, and what a later one may post: all of it is read."""

import json
import re
import zipfile
from datetime import UTC, date, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from daskscope import wire
from daskscope.compression import compress
from daskscope.testing import (
    START_MS,
    death,
    environment,
    event,
    exception,
    groups,
    logs,
    member,
    message,
    metrics,
    profile,
    span,
)  # fmt: skip
from daskscope.testing import tasks as some_tasks
from daskscope_lambdas.service.envelope import unpack
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.wiring import LocalAdapters
from daskscope_query.lake import Lake
from daskscope_query.questions import question
from daskscope_query.tables import MOMENT
from tests.query.lake_rig import DAY, LakeRig, catalog, envelope

EARLIER = Path(__file__).with_name("earlier")
RELEASES = {"before-members": "a" * 32, "before-parts": "b" * 32}
SEALED = {"before-members": date(2026, 11, 19), "before-parts": date(2026, 11, 20)}


@pytest.fixture
def ingest(adapters: LocalAdapters) -> Ingest:
    return Ingest.over(adapters)


def write(adapters: LocalAdapters) -> int:
    """All that is queued; how many could not be kept."""
    deliveries = adapters.feed.receive(100, 60)
    unfit = Writer(adapters.objects, adapters.seals).write_what_fits([unpack(d.body) for d in deliveries])
    adapters.feed.delete([delivery.receipt for delivery in deliveries])
    return len(unfit)


def rows(adapters: LocalAdapters, table: str) -> list[dict[str, Any]]:
    return Lake(adapters.lake_root, None).day(table, account="acme", day=DAY).records()


@pytest.mark.parametrize("release", RELEASES)
def test_their_messages_are_taken(ingest: Ingest, adapters: LocalAdapters, release: str) -> None:
    for seq in range(3):
        body = (EARLIER / release / f"message-{seq}.zst").read_bytes()
        assert ingest.take("acme", body, "zstd").id == 1
    known = adapters.clusters.get("acme", 1)
    assert (known.uuid, known.started_at, known.phase) == (RELEASES[release], START_MS / 1000, "closed")
    assert (known.identity["user"], known.totals["n_tasks"], known.lost) == ("ada", 8, {"buffer-full": 1})
    assert write(adapters) == 0
    assert [row["seq"] for row in rows(adapters, "samples")] == [0, 1, 2]
    assert {row["merged"] for row in rows(adapters, "samples")} == {0}
    assert [row["no"] for row in rows(adapters, "exceptions")] == [0, 1, 2]
    assert len(rows(adapters, "workers")) == 6
    assert bool(rows(adapters, "deaths")) is (release != "before-members")


@pytest.mark.parametrize("release", RELEASES)
def test_what_they_queued_is_unpacked_and_written(adapters: LocalAdapters, release: str) -> None:
    packed = (EARLIER / release / "envelope").read_text()
    found = unpack(packed)
    assert (found.account, found.message.cluster, found.skew_ms, found.message.part) == (
        "acme", RELEASES[release], None, 0,
    )  # fmt: skip
    adapters.queue.send(packed)
    assert write(adapters) == 0
    assert [row["skew_ms"] for row in rows(adapters, "samples")] == [None]
    assert [(row["user"], row["user_claimed"]) for row in rows(adapters, "clusters")] == [("ada", None)]


def test_a_later_message_is_taken_without_what_nobody_here_knows(ingest: Ingest, adapters: LocalAdapters) -> None:
    plain: dict[str, Any] = json.loads(wire.encode(message(exceptions=[exception()])))
    plain |= {"v": 3, "mood": "sunny", "queues": {"name": ["a"], "length": [1]}, "storms": [{"no": 0}]}
    plain["totals"]["n_dreams"] = 7
    plain["identity"]["planet"] = "earth"
    plain["workers"]["humour"] = ["dry", "wet"]
    plain["exceptions"][0]["colour"] = "red"
    assert ingest.take("acme", *compress(json.dumps(plain).encode())).id == 1
    assert write(adapters) == 0
    assert [row["n_workers"] for row in rows(adapters, "samples")] == [2]
    assert [row["text"] for row in rows(adapters, "exceptions")] == ["no such column"]
    assert len(rows(adapters, "workers")) == 2


def today(cluster: str) -> list[Any]:
    """Messages of this release in a cluster of an earlier one: its plugin was upgraded meanwhile."""
    return [
        envelope(
            cluster=cluster,
            seq=seq,
            boot=f"{START_MS + 60_000:012x}{0xABC:012x}",
            groups=groups({"no": 0, "n_tasks": 5}),
            computations=[wire.Computation(no=0, start_ms=START_MS)],
            exceptions=[exception(no=seq)],
            events=[event(no=seq)],
            members=[member(environment=0)],
            environments=[environment()],
            deaths=[death(no=seq)],
            spans=[span()],
            metrics=metrics({}),
            tasks=some_tasks(2, first_no=2 * seq),
            logs=logs({"no": seq}),
            profiles=[profile()],
        )
        for seq in range(2)
    ]


def the_lake(rig: LakeRig) -> dict[Path, bytes]:
    """Files of both earlier releases and of this one; what the earlier ones wrote."""
    for release in RELEASES:
        with zipfile.ZipFile(EARLIER / release / "lake.zip") as files:
            files.extractall(rig.root)
    old = {path: path.read_bytes() for path in rig.root.rglob("*") if path.is_file()}
    for cluster in RELEASES.values():
        rig.write(*today(cluster))
    rig.seals.day = max(SEALED.values())
    return old


QUERIES = sorted(
    entry.name.removesuffix(".sql")
    for entry in resources.files("daskscope_query").joinpath("sql").iterdir()
    if entry.name.endswith(".sql")
)
PAGED = {"limit": 1000, "offset": 0}


def arguments(rig: LakeRig, cluster: str) -> dict[str, Any]:
    """What questions are asked with; of a computation, with one whose code was told."""
    told = rig.records("computations", first=min(SEALED.values()), cluster=cluster)
    computation = next(found for found in told if found["fingerprint"])
    return {
        "cluster": cluster,
        "clusters": [cluster],
        "worker": "tcp://127.0.0.1:40001",
        "day": DAY,
        "account": "acme",
        "fingerprint": computation["fingerprint"],
        "id": f"{computation['boot']}-{computation['no']}",
        "ids": [f"{computation['boot']}-{computation['no']}"],
        "by": ["user"],
        "name": "of ada",
        **PAGED,
    }


@pytest.mark.parametrize("release", RELEASES)
def test_every_question_is_answered_over_old_and_new_files(rig: LakeRig, release: str) -> None:
    old = the_lake(rig)
    cluster = RELEASES[release]
    first = min(SEALED.values())
    heard = pa.table({"cluster": [cluster], "until_at": pa.array([datetime(2026, 11, 22, tzinfo=UTC)], MOMENT)})
    given = {"catalog": catalog({cluster: "ada"}), "heard": heard}
    known, empty = arguments(rig, cluster), set[str]()
    for query in QUERIES:
        asked = set(re.findall(r"\$([a-z_]+)", question(query).sql))
        wanted = {name: value for name, value in known.items() if name in asked}
        answer = rig.ask(query, first=first, last=DAY, given=given, **wanted)
        assert answer.skipped == [], query
        if not answer.rows.num_rows:
            empty.add(query)
    assert empty == {"audit"}, "which no message writes"
    assert {path: path.read_bytes() for path in old} == old, "nothing is rewritten"


@pytest.mark.parametrize("release", RELEASES)
def test_old_and_new_rows_stand_side_by_side(rig: LakeRig, release: str) -> None:
    the_lake(rig)
    cluster, first = RELEASES[release], min(SEALED.values())

    def ask(query: str, **params: Any) -> list[dict[str, Any]]:
        return rig.records(query, first=first, cluster=cluster, **params)

    boots = ask("completeness")
    assert [(found["expected"], found["received"]) for found in boots] == [(3, 3), (3, 3), (2, 2)]
    days = (SEALED[release], DAY)
    kept = [row for day in days for row in rig.lake().day("samples", account="acme", day=day).records()]
    samples = [row for row in kept if row["cluster"] == cluster]
    assert len(samples) == 8
    assert {found["merged"] for found in samples} == {None, 0}
    assert {found["skew_ms"] for found in samples} == {None}
    assert len(ask("exceptions", **PAGED)) == 8
    n_deaths = 2 if release == "before-members" else 8
    assert len(ask("deaths", **PAGED)) == n_deaths
