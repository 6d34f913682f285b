"""Open a lake and ask it named questions: the one way in which files of the lake are read.

A question is a file of `sql/`; its first line says which relations it reads (`-- reads: groups, clusters_before`):

- `<table>`: rows of the days asked for, from sealed files up to the boundary and open files after it, with repeats
  dropped by the rule of `tables.py` over all of those days together;
- `<table>_before`: the same for earlier days, but only of clusters that stand in the tables above and began before the
  first day asked for; so a day's share of what only ever grows can be told;
- `<rollup>`: roll-ups of sealed days, and of open days as computed on the spot by the query of that name, as are those
  that could not be made when their day was sealed. One that cannot be made now either is named among what was skipped.

Each relation holds rows of one account and nothing else, whatever the SQL says: the wall is the relation.
DuckDB (engine.py) sees registered relations only; it may open no file but
its own, load no extension and change no setting.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from daskscope_query import engine, files, layout
from daskscope_query.answer import Answer, MovedError, UnmadeError
from daskscope_query.exclusion import Exclusion
from daskscope_query.listing import Listing
from daskscope_query.questions import BEFORE, Question, question, read_by, sources
from daskscope_query.tables import CLUSTERS, CLUSTERS_DAILY, ROLLUPS, SAMPLES, TABLES, Table

__all__ = ["Answer", "Lake", "MovedError", "UnmadeError"]

_AT_ONCE = 16
"""Files whose footers are looked at together: in a bucket each takes its time."""


@dataclass(slots=True)
class _Scope:
    account: str
    first: date
    last: date
    clusters: Sequence[str] | None = None
    until: datetime | None = None
    given: Mapping[str, pa.Table] = field(default_factory=dict[str, pa.Table])
    flaws: dict[str, str] = field(default_factory=dict[str, str])
    """Keys of files that could not be read, and the table of each."""


class Lake(Listing):
    """A lake at `root`, a path or a URI that pyarrow opens; days up to `boundary` are read from sealed files.

    Cheap to make: nothing is opened before a question. `open_files` (keys) narrows the open days to those files,
    `without` says by account what is in no relation. A missing folder is an empty lake.
    """

    def ask(
        self,
        query: str,
        *,
        account: str,
        days: tuple[date, date],
        received_until: datetime | None = None,
        given: Mapping[str, pa.Table] | None = None,
        **params: Any,
    ) -> Answer:
        """Run a query of `sql/` over arrival days `days` (both included); a parameter left out is null.

        `cluster` and `clusters` narrow every relation to those clusters, `received_until` to what had come by then (but
        for roll-ups). `given` are further relations, by name, such as the catalog. Raises MovedError.
        """
        cluster = params.get("cluster")
        clusters = [cluster] if cluster is not None else params.get("clusters")
        first, last = days
        scope = _Scope(account, first, self._with_late(first, last), clusters, received_until, given=given or {})
        return self._answer(question(query), scope, params, freshness=True)

    def day(self, table: str, *, account: str, day: date) -> Answer:
        """All rows of one day, repeats dropped, in the table's order: always the same."""
        order = ", ".join(f'"{name}"' for name in dict.fromkeys((*TABLES[table].order, *TABLES[table].key)))
        query = Question(f'SELECT * FROM "{table}" ORDER BY {order}', (table,))  # noqa: S608  names of our own tables
        return self._shaped(self._answer(query, _Scope(account, day, day), {}), TABLES[table])

    def rollup(self, name: str, *, account: str, day: date) -> Answer:
        """A roll-up of one day, computed from the rows of that day and what came before it. Raises UnmadeError."""
        try:
            found = self._answer(question(name), _Scope(account, day, day), {"account": account, "day": day})
            return self._shaped(found, ROLLUPS[name])
        except (duckdb.DataError, pa.ArrowInvalid) as error:
            raise UnmadeError(str(error)) from error

    def file(self, table: str, key: str) -> pa.Table:
        """All rows of a file, of every account: for what moves rows. Raises UnreadableError, FileNotFoundError."""
        return files.read(self._filesystem, self._root + key, TABLES[table].schema)

    def owners(self, table: str, key: str) -> set[tuple[str, str]]:
        """Accounts and clusters whose rows a file holds, for which all of it is read. Raises UnreadableError,
        FileNotFoundError.
        """
        rows = self.file(table, key).group_by(["account", "cluster"]).aggregate([]).to_pylist()
        found = {(row["account"], row["cluster"]) for row in rows}
        if any(account is None for account, _ in found):
            raise files.UnreadableError("it has rows of no account")
        return found

    def holding(self, table: Table, account: str, first: date, last: date) -> list[str]:
        """Sealed files (or roll-ups) of these days with rows that are left out. Raises UnreadableError, MovedError."""
        hidden = self._hidden(account, table)
        if hidden is None:
            return []
        list_keys = self.rollup_keys if table.name in ROLLUPS else self._sealed
        keys = list_keys(table.name, account, first, last)

        def holds(key: str) -> bool:
            try:
                return files.holds(self._filesystem, self._root + key, table.schema, hidden)
            except FileNotFoundError as error:
                raise MovedError(f"{key} is gone: its day was made anew.") from error

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return [key for key, found in zip(keys, pool.map(holds, keys), strict=True) if found]

    def _hidden(self, account: str, table: Table) -> Any:
        without = self._without.get(account)
        return without.rows(table.schema) if without else None

    def stored(self, name: str, account: str, day: date, hidden: bool = False) -> pa.Table:
        """Rows of a roll-up as it was made when the day was sealed; `hidden`: those that are left out.

        Raises UnreadableError, MovedError.
        """
        table, keys = ROLLUPS[name], self.rollup_keys(name, account, day, day)
        rows = self.dataset(keys, table, account, None)
        if hidden:
            wanted = self._hidden(account, table)
            if wanted is None:
                return table.schema.empty_table()
            paths = [self._root + key for key in keys]
            rows = files.relation(self._filesystem, paths, table.schema, account, None, None, ~wanted)
        with _told():
            return rows.to_table()

    def remaining(self, name: str, account: str, day: date) -> Answer:
        """What is left of a sealed day's roll-up without what is left out.

        Where no row stands of which it was made, nobody can tell what a cluster added: all goes that is said of its
        user. Raises UnmadeError, UnreadableError, MovedError.
        """
        without = self._without.get(account, Exclusion())
        if name == CLUSTERS_DAILY.name and without.until is None:
            return Answer(self.stored(name, account, day), [])
        if self._whole(name, account, day):
            return self.rollup(name, account=account, day=day)
        if without.until is not None:
            return Answer(ROLLUPS[name].schema.empty_table(), [])
        users = self.stored(CLUSTERS_DAILY.name, account, day, hidden=True).column("user").combine_chunks()
        return Answer(self.stored(name, account, day).filter(~pc.field("user").isin(users)), [])

    def _whole(self, name: str, account: str, day: date) -> bool:
        """Whether all rows stand of which the day's roll-up was made: its own, and those of its clusters before it."""
        if not all(self.keys(source, account, day, day) for source in sources(name)):
            return False
        tables = read_by(name)
        boots = {boot for table in tables for boot in self._column("boot", table, account, day)}
        began = layout.day_of(min([layout.midnight_ms(day), *map(_boot_ms, boots)]) / 1000)
        return not any(self.gone_days(table, account, began, day) for table in tables)

    def clusters(self, table: str, account: str, day: date) -> set[str]:
        """Whose rows a sealed day of a table holds. Raises UnreadableError, MovedError."""
        return self._column("cluster", table, account, day)

    def _column(self, name: str, table: str, account: str, day: date) -> set[str]:
        keys = self._sealed(table, account, day, day)
        found: set[str] = set()
        with _told():
            for batch in self.dataset(keys, TABLES[table], account, None).scanner(columns=[name]).to_batches():
                found.update(batch.column(name).unique().to_pylist())
        return found

    def codes(self, account: str) -> set[str]:
        """Hashes of all code that the account's rows name, of whatever day. Raises UnreadableError, MovedError."""
        table = TABLES["computations"]
        keys = self.keys(table.name, account, date.min, date.max)
        found: set[str] = set()
        with _told():
            for batch in self.dataset(keys, table, account, None).scanner(columns=["code"]).to_batches():
                found.update(batch.column("code").flatten().flatten().field("code").unique().to_pylist())
        return found

    def _shaped(self, answer: Answer, table: Table) -> Answer:
        return Answer(answer.rows.select(table.schema.names).cast(table.schema), answer.skipped)

    def _answer(self, query: Question, scope: _Scope, params: dict[str, Any], freshness: bool = False) -> Answer:
        # The first try may meet flawed files, the second one files that vanished, the third one such again.
        for _ in range(3):
            session = _Session(self, scope)
            try:
                return session.answer(query, params, freshness)
            except duckdb.Error:
                if not self._explained(session, scope):
                    raise
            finally:
                session.close()
        raise MovedError("Files of sealed days went away whenever they were to be read: many days are made anew.")

    def _explained(self, session: _Session, scope: _Scope) -> bool:
        """Whether a file that the session read is the cause; notes those that are flawed."""
        explained = False
        for table, keys in session.read.values():
            for key in keys:
                try:
                    files.read(self._filesystem, self._root + key, table.schema)
                except FileNotFoundError as error:
                    if key.startswith("open/"):
                        raise MovedError(f"{key} is gone: it was merged, or its day sealed.") from error
                    explained = True
                except files.UnreadableError:
                    scope.flaws[key] = table.name
                    explained = True
        return explained

    def stale_days(self, name: str, account: str, first: date, last: date) -> list[date]:
        """Sealed days within these whose roll-up counts what is left out."""
        without = self._without.get(account)
        if without is None:
            return []
        first, last = max(first, without.swept_through + timedelta(1)), min(last, self._boundary)
        if first > last:
            return []
        reads = [TABLES[table] for table in question(name).reads if table in TABLES]
        if name != CLUSTERS_DAILY.name:
            reads.append(CLUSTERS_DAILY)  # It may outlast the tables.
        try:
            keys = [key for table in reads for key in self.holding(table, account, first, last)]
        except files.UnreadableError:
            keys = self.rollup_keys(name, account, first, last)  # Of what cannot be read nobody knows.
        return sorted({day for key in keys if (day := layout.day_in(key))})

    def dataset(
        self,
        keys: Sequence[str],
        table: Table,
        account: str,
        clusters: Sequence[str] | None,
        until: datetime | None = None,
    ) -> Any:
        paths = [self._root + key for key in keys]
        hidden = self._hidden(account, table)
        return files.relation(self._filesystem, paths, table.schema, account, clusters, until, hidden)


class _Session:
    """One try at one question: a cursor with the relations that the query names."""

    def __init__(self, lake: Lake, scope: _Scope) -> None:
        self._lake, self._scope = lake, scope
        self._cursor = engine.cursor()
        self._skipped: set[str] = set()
        self.read: dict[str, tuple[Table, list[str]]] = {}
        """By relation, the files that may have been read."""

    def close(self) -> None:
        self._cursor.close()

    def answer(self, query: Question, params: dict[str, Any], freshness: bool) -> Answer:
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

    def _add(self, name: str, table: Table, first: date, last: date, clusters: Sequence[str] | None) -> None:
        keys = [k for k in self._lake.keys(table.name, self._scope.account, first, last) if k not in self._scope.flaws]
        self.read[name] = (table, keys)
        dataset = self._lake.dataset(keys, table, self._scope.account, clusters, self._scope.until)
        self._cursor.register(f"{name}_files", dataset)
        key = ", ".join(f'"{column}"' for column in table.key)
        # Among equal messages the one received first counts, so that the choice is always the same.
        self._cursor.execute(f"""
            CREATE TEMP VIEW "{name}" AS SELECT * FROM "{name}_files"
            QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY seq DESC, received_at) = 1
        """)  # noqa: S608  names of our own tables

    def _add_before(self, early: Sequence[str], tables: Sequence[str]) -> None:
        """Relations of the days before the first one, for clusters of `tables` that were there before it."""
        first = self._scope.first
        midnight_ms = layout.midnight_ms(first)
        # Identities travel once, so they do not show which clusters there are; every other table does.
        sources = [f'SELECT cluster, boot FROM "{name}_files"' for name in tables if name != "clusters"]  # noqa: S608
        found = self._cursor.execute(" UNION ".join(sources)).fetchall()
        began = {(cluster, ms) for cluster, boot in found if (ms := _boot_ms(boot)) < midnight_ms}
        from_day = layout.day_of(min((ms for _, ms in began), default=midnight_ms) / 1000)
        clusters = sorted({cluster for cluster, _ in began})
        for name in early:
            # With no such cluster the span of days is empty, and so is the relation.
            self._add(name, TABLES[name.removesuffix(BEFORE)], from_day, first - timedelta(1), clusters)

    def _add_rollup(self, rollup: Table) -> None:
        account, first, last = self._scope.account, self._scope.first, self._scope.last
        keys = self._lake.rollup_keys(rollup.name, account, first, last)
        stale = self._lake.stale_days(rollup.name, account, first, last)
        keys = [key for key in keys if key not in self._scope.flaws and layout.day_in(key) not in stale]
        self.read[rollup.name] = (rollup, keys)
        self._cursor.register("sealed_days", self._lake.dataset(keys, rollup, account, None))
        made = [rollup.schema.empty_table()]
        unmade = self._lake.unmade_days(rollup.name, account, first, last)
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
        fresh = pa.concat_tables(made)
        self._cursor.register("open_days", fresh)
        self._cursor.execute(f"""
            CREATE TEMP VIEW "{rollup.name}" AS FROM sealed_days UNION ALL BY NAME FROM open_days
        """)

    def _as_of(self) -> datetime | None:
        """Every message has a row in `samples`; without a cluster the newest day that has any is enough."""
        scope = self._scope
        keys = self._lake.keys(SAMPLES.name, scope.account, scope.first, scope.last)
        keys = [key for key in keys if key not in scope.flaws]
        if scope.clusters is None:
            newest = max((day for key in keys if (day := layout.day_in(key))), default=None)
            keys = [key for key in keys if layout.day_in(key) == newest]
        self.read["as_of"] = (SAMPLES, keys)
        dataset = self._lake.dataset(keys, SAMPLES, scope.account, scope.clusters, scope.until)
        self._cursor.register("as_of_files", dataset)
        latest = self._cursor.sql("SELECT max(received_at) AS at FROM as_of_files").to_arrow_table()
        return latest.column(0)[0].as_py()

    def _until(self, reads: Sequence[str]) -> datetime | None:
        """Of the very files that were read: others may have come by now."""
        if self._scope.until is not None:
            return self._scope.until
        read = [f"{name}_files" for name in reads if name in TABLES]
        union = " UNION ALL ".join(f'SELECT received_at FROM "{name}"' for name in ["as_of_files", *read])  # noqa: S608  names of our own tables
        latest = self._cursor.sql(f"SELECT max(received_at) AS at FROM ({union})").to_arrow_table()  # noqa: S608
        return latest.column(0)[0].as_py()


@contextmanager
def _told() -> Generator[None]:
    """What reading raises, as this module says it."""
    try:
        yield
    except FileNotFoundError as error:
        raise MovedError(str(error)) from error
    except (pa.ArrowException, OSError) as error:
        raise files.UnreadableError(str(error)) from error


def _boot_ms(boot: str) -> int:
    """Epoch milliseconds at which a boot began, by the scheduler's clock; 0 if its name does not tell."""
    try:
        return int(boot[:12], 16)
    except ValueError:
        return 0
