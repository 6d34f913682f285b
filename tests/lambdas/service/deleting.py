"""What the tests of deletion share: a whole embedded house, fed through ingest, and what anybody can see of it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from daskscope import wire
from daskscope.compression import compress
from daskscope.testing import START_MS, event, exception, groups, identity, message
from daskscope_lambdas.env import LocalEnv
from daskscope_lambdas.ports import Missing, StoreError
from daskscope_lambdas.service.cataloguer import Cataloguer
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.service.deletion import Deleter
from daskscope_lambdas.service.envelope import unpack
from daskscope_lambdas.service.exclusions import Exclusions
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.tidy import Tidier
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters, connect
from daskscope_query import layout

DAY_S = 86_400.0
MINE, DOOMED, THEIRS = "a" * 31 + "1", "b" * 31 + "2", "c" * 31 + "3"
OWNERS = {MINE: "acme", DOOMED: "acme", THEIRS: "globex"}
SECRETS = {MINE: "minewords", DOOMED: "doomedwords", THEIRS: "theirswords"}
"""Stands in all that a cluster tells."""
SHARED = "def shared(): pass"
QUERIES = ("exceptions", "prefixes", "families")


class House:
    """Three clusters: two of one account, which use a piece of code both, and one of another."""

    def __init__(self, data: Path, clock: FakeClock) -> None:
        self.clock = clock
        self.data = data
        self.world = connect(LocalEnv(data=str(data)), clock)
        self.ingest = self._ingest()

    def _ingest(self) -> Ingest:
        world = self.world
        return Ingest.over(world)

    def tell(self, seq: int, *clusters: str) -> None:
        """A message of each."""
        for cluster in clusters or OWNERS:
            self.post(cluster, seq)

    def post(self, cluster: str, seq: int) -> wire.Reply:
        secret = SECRETS[cluster]
        codes = [_code(SHARED), _code(f"def {secret}(): pass")]
        frames = [[wire.Frame(code=each.hash, file=f"{secret}.py", line=1, line_in_code=1) for each in codes]]
        told = message(
            cluster=cluster,
            seq=seq,
            identity=identity(name=secret, user=f"{secret}-user"),
            groups=groups(
                {"no": 0, "n_tasks": 4 + seq, "prefix": f"p-{secret}"}, {"no": 1, "n_tasks": 5, "prefix": "sum"}
            ),
            computations=[wire.Computation(no=0, start_ms=START_MS, stop_ms=START_MS + 9, code=frames)],
            exceptions=[exception(no=seq, text=f"{secret} failed"), exception(no=seq + 1000, text="all fail", count=1)],
            events=[event(no=seq, action=secret)],
            codes=codes if seq == 0 else [],
            totals=wire.Totals(n_workers=seq, thread_us=seq * 100, action_us={"compute": seq * 50}),
        )
        return self.ingest.take(OWNERS[cluster], *compress(wire.encode(told)))

    def write(self) -> None:
        """The queue into the lake."""
        while batch := self.world.feed.receive(1000, 60.0):
            Writer(self.world.objects, self.world.seals).write(
                [unpack(delivery.body) for delivery in batch], f"batch-{batch[0].id}"
            )
            self.world.feed.delete([delivery.receipt for delivery in batch])

    def run(self) -> None:
        """`compact` as its handler has it."""
        world = self.world
        exclusions = Exclusions(world.deletions, world.clusters)
        Cataloguer(world).run()
        Compactor(world.objects, world.seals, world.clock, world.lake_root, exclusions).run()
        Deleter(world).run()
        Tidier(world).run()

    def days(self, number: int) -> None:
        """So many days pass, in which `compact` runs as it should: after the seal, and when open files have rested."""
        for _ in range(number):
            self.clock.at = (self.clock.at // DAY_S + 1) * DAY_S + 2 * 3600 + 1
            self.run()
            self.clock.advance(3700)
            self.run()

    def delete(self, cluster: str) -> None:
        Deleter(self.world).delete_cluster(self.world.clusters.find(OWNERS[cluster], cluster), "test")

    def seen(self, account: str) -> dict[str, Any]:
        """What a team can see of all days, and what each of its clusters shows."""
        world = self.world
        asker = Asker(world.lake_root, world.seals, world.deletions)
        days = (layout.day_of(START_MS / 1000), layout.day_of(self.clock.now()))
        answers = {name: asker.ask(name, account, days, **_all(name)) for name in QUERIES}
        found = {name: answer.records() for name, answer in answers.items()}
        assert not [answer.skipped for answer in answers.values() if answer.skipped]
        for cluster, owner in OWNERS.items():
            if owner == account:
                for name in ("events", "groups", "samples"):
                    options = {"limit": 99, "offset": 0} if name == "events" else {}
                    found[f"{name} {cluster}"] = asker.ask(name, account, days, cluster=cluster, **options).records()
        return found

    def code(self, account: str) -> set[str]:
        """Texts that can still be read."""
        hashes = [layout.hash_in(key) for key in self.world.objects.list(layout.code_key(account, ""))]
        return set(CodeKeeper(self.world.objects, self.world.vault).read(account, hashes).values())


class Mortal:
    """Dies right after the n-th change of any of its stores, and changes nothing from then on: what comes next finds
    all that was done before."""

    def __init__(self, n: int = 1 << 30) -> None:
        self.left = n
        self.n_changes = 0

    def holding(self, world: LocalAdapters) -> LocalAdapters:
        names = (
            "objects", "clusters", "deletions", "policies", "seals", "tokens", "users", "tickets", "reports",
            "report_files", "vault",
        )  # fmt: skip
        return replace(world, **{name: _Store(self, getattr(world, name)) for name in names})

    def changes(self) -> None:
        if self.left <= 0:
            raise StoreError("dead")

    def changed(self) -> None:
        self.left -= 1
        self.n_changes += 1
        if self.left == 0:
            raise StoreError("dead")


CHANGES = {
    "put_new", "delete", "discard", "remove", "forget", "forget_numbers", "ask", "swept", "done", "set_wish", "advance",
}  # fmt: skip


class _Store:
    def __init__(self, mortal: Mortal, store: Any) -> None:
        self._mortal, self._store = mortal, store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in CHANGES:
            return method

        def change(*arguments: Any) -> Any:
            self._mortal.changes()
            answer = method(*arguments)
            self._mortal.changed()
            return answer

        return change


def _all(name: str) -> dict[str, Any]:
    return {"limit": 1000, "offset": 0}


def _code(text: str) -> wire.Code:
    return wire.Code(hash=hashlib.sha256(text.encode()).hexdigest()[:32], text=text)


def found_in(data: Path, *words: str) -> dict[str, list[str]]:
    """By word, the files below `data` whose name or bytes hold it, or rows, in a file of the lake."""
    found: dict[str, list[str]] = {word: [] for word in words}
    for path in sorted(path for path in data.rglob("*") if path.is_file()):
        text = path.read_bytes() + str(path.relative_to(data)).encode()
        if path.suffix == ".parquet":
            text += repr(_parquet(path)).encode()
        for word in words:
            if word.encode() in text:
                found[word].append(str(path.relative_to(data)))
    return found


def _parquet(path: Path) -> Any:
    return pq.read_table(path).to_pylist()


def tokens(world: LocalAdapters, account: str) -> str:
    return mint(world.tokens, world.clock, account, ["read"], "ann")[1].key_id


def is_known(world: LocalAdapters, key_id: str) -> bool:
    try:
        world.tokens.find(key_id)
    except Missing:
        return False
    return True
