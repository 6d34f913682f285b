"""One try at one question: DuckDB's cursor with the relations that it names, and how fresh they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as ds

from daskscope_query import engine, files, layout
from daskscope_query.answer import Answer, UnmadeError
from daskscope_query.questions import BEFORE, ENTRIES, Question
from daskscope_query.relations import Relation, Wanted, with_entries
from daskscope_query.tables import ROLLUPS, SAMPLES, TABLES, Table


@dataclass(slots=True)
class Scope:
    """What a question is about."""

    account: str
    first: date
    last: date
    clusters: Sequence[str] | None = None
    until: datetime | None = None
    given: Mapping[str, pa.Table] = field(default_factory=dict[str, pa.Table])
    flaws: dict[str, str] = field(default_factory=dict[str, str])
    """Keys of files that could not be read, and the table of each."""


class Source(Protocol):
    """What a session needs of the lake, which says what each does."""

    def keys(self, table: str, account: str, first: date, last: date) -> list[str]: ...
    def rollup_keys(self, name: str, account: str, first: date, last: date) -> list[str]: ...
    def rollup_days(self, name: str, account: str, first: date, last: date) -> tuple[list[str], list[date]]: ...
    def open_days(self, first: date, last: date) -> list[date]: ...
    def stale_days(self, name: str, account: str, first: date, last: date) -> list[date]: ...
    def relation(self, keys: Sequence[str], table: Table, wanted: Wanted) -> Relation: ...
    def rollup(self, name: str, *, account: str, day: date) -> Answer: ...
    def remaining(self, name: str, account: str, day: date) -> Answer: ...


class Session:
    """To be closed. Of what cannot be read, `read` tells which files it may have been."""

    def __init__(self, lake: Source, scope: Scope) -> None:
        self._lake, self._scope = lake, scope
        self._cursor = engine.cursor()
        self._skipped: set[str] = set()
        self._relations: dict[str, Relation] = {}
        self._listed: dict[tuple[str, date, date], list[str]] = {}
        self.read: dict[str, tuple[Table, list[str]]] = {}
        """By relation, the files that may have been read."""

    def close(self) -> None:
        self._cursor.close()

    def answer(self, query: Question, params: dict[str, Any], freshness: bool) -> Answer:
        """Raises duckdb.Error, and what pyarrow raises for a file that cannot be read."""
        arguments = query.arguments(params)
        as_of = self._as_of() if freshness else None
        for name in query.reads:
            if name in ROLLUPS:
                self._add_rollup(ROLLUPS[name])
            elif name in TABLES:
                self._add(name, TABLES[name], self._scope.first, self._scope.last, self._scope.clusters)
        for name, rows in self._scope.given.items():
            self._cursor.register(name, rows)
        if early := [name for name in query.reads if name.endswith(BEFORE)]:
            self._add_before(early, [name for name in query.reads if name in TABLES])
        # A statement without parameters is given none: DuckDB refuses an empty set of them.
        rows = self._cursor.sql(query.sql, params=arguments or None).to_arrow_table()
        tables = {name.removesuffix(BEFORE) for name in query.reads}
        mine = {key for key, table in self._scope.flaws.items() if table in tables}
        return Answer(rows, sorted(mine | self._skipped), as_of, self._until(query.reads) if freshness else None)

    def _keys(self, table: str, first: date, last: date) -> list[str]:
        """Listed once, so that what tells the age of an answer is of the files that made it."""
        if (table, first, last) not in self._listed:
            self._listed[table, first, last] = self._lake.keys(table, self._scope.account, first, last)
        return [key for key in self._listed[table, first, last] if key not in self._scope.flaws]

    def _add(self, name: str, table: Table, first: date, last: date, clusters: Sequence[str] | None) -> None:
        keys = self._keys(table.name, first, last)
        self.read[name] = (table, keys)
        wanted = Wanted(self._scope.account, clusters, self._scope.until, unpacked=True)
        relation = self._relations[name] = self._lake.relation(keys, table, wanted)
        if relation.unique:
            self._cursor.register(name, relation.rows)
            return
        once, other = relation.apart or (None, relation.rows)
        self._cursor.register(f"{name}_files", other)
        unique = ""
        if once is not None:
            self._cursor.register(f"{name}_once", once)
            unique = f'FROM "{name}_once" UNION ALL BY NAME '
        # All rows are of one account, and maybe of one cluster.
        alike = {"account", "cluster"} if clusters is not None and len(clusters) == 1 else {"account"}
        key = ", ".join(f'"{column}"' for column in table.key if column not in alike)
        # Among equal messages the one received first counts, so that the choice is always the same.
        self._cursor.execute(f"""
            CREATE TEMP VIEW "{name}" AS {unique}(
                SELECT * FROM "{name}_files"
                QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY seq DESC, received_at) = 1
            )
        """)  # noqa: S608  names of our own tables

    def _add_before(self, early: Sequence[str], tables: Sequence[str]) -> None:
        """Relations of the days before the first one, for clusters of `tables` that were there before it."""
        first = self._scope.first
        midnight_ms = layout.midnight_ms(first)
        # Identities travel once, so they do not show which clusters there are; every other table does.
        found = {pair for name in tables if name != "clusters" for pair in self._relations[name].boots()}
        began = {(cluster, ms) for cluster, boot in found if (ms := boot_ms(boot)) < midnight_ms}
        from_day = layout.day_of(min((ms for _, ms in began), default=midnight_ms) / 1000)
        clusters = sorted({cluster for cluster, _ in began})
        for name in early:
            # With no such cluster the span of days is empty, and so is the relation.
            self._add(name, TABLES[name.removesuffix(BEFORE)], from_day, first - timedelta(1), clusters)

    def _add_rollup(self, rollup: Table) -> None:
        account, first, last = self._scope.account, self._scope.first, self._scope.last
        keys, unmade = self._lake.rollup_days(rollup.name, account, first, last)
        stale = self._lake.stale_days(rollup.name, account, first, last)
        keys = [key for key in keys if key not in self._scope.flaws and layout.day_in(key) not in stale]
        self.read[rollup.name] = (rollup, keys)
        wanted = Wanted(account, unpacked=True)
        sealed, made = self._lake.relation(keys, rollup, wanted).rows, list[pa.Table]()
        for day in sorted({*unmade, *stale, *self._lake.open_days(first, last)}):
            make = self._lake.remaining if day in stale and day not in unmade else self._lake.rollup
            try:
                found = make(rollup.name, account=account, day=day)
            except UnmadeError:
                self._skipped.add(layout.unmade_key(rollup.name, account, day))
            except files.UnreadableError:
                self._skipped.update(self._lake.rollup_keys(rollup.name, account, day, day))
            else:
                self._skipped.update(found.skipped)
                made.append(found.rows)
        self._unite(rollup.name, sealed, made)
        if maps := [field.name for field in rollup.schema if pa.types.is_map(field.type)]:
            self._add_entries(rollup.name, maps, sealed, made)

    def _unite(self, name: str, sealed: ds.Dataset | pa.Table, made: Sequence[pa.Table]) -> None:
        if not made:
            self._cursor.register(name, sealed)
            return
        self._cursor.register(f"{name}_sealed", sealed)
        self._cursor.register(f"{name}_open", pa.concat_tables(made))
        self._cursor.execute(f'CREATE TEMP VIEW "{name}" AS FROM "{name}_sealed" UNION ALL BY NAME FROM "{name}_open"')

    def _add_entries(
        self, name: str, maps: Sequence[str], sealed: ds.Dataset | pa.Table, made: Sequence[pa.Table]
    ) -> None:
        if isinstance(sealed, pa.Table):
            self._unite(name + ENTRIES, with_entries(sealed), [with_entries(rows) for rows in made])
            return
        entries = ", ".join(f'map_entries("{column}") AS "{column}"' for column in maps)
        self._cursor.execute(f'CREATE TEMP VIEW "{name}{ENTRIES}" AS SELECT * REPLACE ({entries}) FROM "{name}"')  # noqa: S608  our own

    def _as_of(self) -> datetime | None:
        """Every message has a row in `samples`; without a cluster the newest day that has any is enough."""
        scope = self._scope
        keys = self._keys(SAMPLES.name, scope.first, scope.last)
        if scope.clusters is None:
            newest = max((day for key in keys if (day := layout.day_in(key))), default=None)
            keys = [key for key in keys if layout.day_in(key) == newest]
        self.read["as_of"] = (SAMPLES, keys)
        relation = self._relations["as_of"] = self._lake.relation(
            keys, SAMPLES, Wanted(scope.account, scope.clusters, scope.until)
        )
        # Of some clusters a footer tells only that none of their rows is newer.
        return (relation.received_until if scope.clusters is None else None) or relation.newest()

    def _until(self, reads: Sequence[str]) -> datetime | None:
        """Of the very files that were read: others may have come by now."""
        if self._scope.until is not None:
            return self._scope.until
        read = [self._relations[name] for name in ("as_of", *(name for name in reads if name in TABLES))]
        told = [relation.received_until or relation.newest() for relation in read]
        return max((each for each in told if each is not None), default=None)


def boot_ms(boot: str) -> int:
    """Epoch milliseconds at which a boot began, by the scheduler's clock; 0 if its name does not tell."""
    try:
        return int(boot[:12], 16)
    except ValueError:
        return 0
