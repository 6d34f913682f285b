"""Open a lake and ask it named questions: the one way in which files of the lake are read.

A question is a file of `sql/`; its first line says which relations it reads (`-- reads: groups, clusters_before`):

- `<table>`: rows of the days asked for, from sealed files up to the boundary and open files after it, with repeats
  dropped by the rule of `tables.py` over all of those days together;
- `<table>_before`: the same for earlier days, but only of clusters that stand in the tables above and began before the
  first day asked for; so a day's share of what only ever grows can be told;
- `<rollup>`: roll-ups of sealed days, and of open days as computed on the spot by the query of that name, as are those
  that could not be made when their day was sealed. One that cannot be made now either is named among what was skipped.
  Beside one with maps stands `<rollup>_entries`, where each map is a list of its entries: of a map that comes from
  Arrow DuckDB looks at all keys for one that is there twice, which takes longer than to sum its values.

Each relation holds rows of one account and nothing else, whatever the SQL says: the wall is the relation.
DuckDB (engine.py) sees registered relations only; it may open no file but
its own, load no extension and change no setting.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from daskscope_query import files, layout
from daskscope_query.answer import Answer, MovedError, UnmadeError
from daskscope_query.exclusion import Exclusion
from daskscope_query.listing import Listing
from daskscope_query.questions import Question, question, read_by, sources
from daskscope_query.relations import Relation, Wanted, related
from daskscope_query.session import Scope, Session, boot_ms
from daskscope_query.tables import CLUSTERS_DAILY, ROLLUPS, TABLES, Table

__all__ = ["Answer", "Lake", "MovedError", "UnmadeError"]

_AT_ONCE = 16
"""Files whose footers are looked at together: in a bucket each takes its time."""


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
        scope = Scope(account, first, self._with_late(first, last), clusters, received_until, given=given or {})
        return self._answer(question(query), scope, params, freshness=True)

    def day(self, table: str, *, account: str, day: date) -> Answer:
        """All rows of one day, repeats dropped, in the table's order: always the same."""
        order = ", ".join(f'"{name}"' for name in dict.fromkeys((*TABLES[table].order, *TABLES[table].key)))
        query = Question(f'SELECT * FROM "{table}" ORDER BY {order}', (table,))  # noqa: S608  names of our own tables
        return self._shaped(self._answer(query, Scope(account, day, day), {}), TABLES[table])

    def rollup(self, name: str, *, account: str, day: date) -> Answer:
        """A roll-up of one day, computed from the rows of that day and what came before it. Raises UnmadeError."""
        try:
            found = self._answer(question(name), Scope(account, day, day), {"account": account, "day": day})
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
        left_out = self._hidden(account, table)
        with _told():
            if not hidden:
                return self.dataset(keys, table, account, None).to_table()
            if left_out is None:
                return table.schema.empty_table()
            wanted = Wanted(account, hidden=~left_out)
            return related(self._filesystem, self._root, keys, self._listed, table.schema, wanted).dataset.to_table()

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
        began = layout.day_of(min([layout.midnight_ms(day), *map(boot_ms, boots)]) / 1000)
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

    def _answer(self, query: Question, scope: Scope, params: dict[str, Any], freshness: bool = False) -> Answer:
        # The first try may meet flawed files, the second one files that vanished, the third one such again.
        for _ in range(3):
            session = Session(self, scope)
            try:
                return session.answer(query, params, freshness)
            except (duckdb.Error, pa.ArrowException, OSError):
                if not self._explained(session, scope):
                    raise
            finally:
                session.close()
        raise MovedError("Files of sealed days went away whenever they were to be read: many days are made anew.")

    def _explained(self, session: Session, scope: Scope) -> bool:
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
        return self.relation(keys, table, Wanted(account, clusters, until)).dataset

    def relation(self, keys: Sequence[str], table: Table, wanted: Wanted) -> Relation:
        """Without what is left out. Raises FileNotFoundError, pa.ArrowInvalid and OSError for a footer that cannot be
        read."""
        wanted = replace(wanted, hidden=self._hidden(wanted.account, table))
        return related(self._filesystem, self._root, keys, self._listed, table.schema, wanted)


@contextmanager
def _told() -> Generator[None]:
    """What reading raises, as this module says it."""
    try:
        yield
    except FileNotFoundError as error:
        raise MovedError(str(error)) from error
    except (pa.ArrowException, OSError) as error:
        raise files.UnreadableError(str(error)) from error
