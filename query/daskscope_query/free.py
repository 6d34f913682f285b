"""Questions that no file of `sql/` asks: one SELECT of the user's own, over an account's tables, roll-ups and catalog.

The wall is the same as for named questions (see lake.py): relations of one account and of the days asked for, in a
DuckDB that opens no file but its own. The query is looked at with empty relations first, so that what is wrong with it
is told before anything is read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

import duckdb
import pyarrow as pa

from daskscope.errors import BadRequest
from daskscope_query import engine
from daskscope_query.answer import Answer
from daskscope_query.lake import Lake
from daskscope_query.questions import Question
from daskscope_query.session import Scope, Session
from daskscope_query.tables import CATALOG, ROLLUPS, TABLES

Params = Mapping[str, Any] | Sequence[Any] | None

CATALOG_COLUMNS = tuple(name for name in CATALOG.schema.names if name != "row")
"""What is shown of the catalog: the registry's own row is its business."""
_RELATIONS = {name: table.schema for name, table in {**TABLES, **ROLLUPS}.items()}
_RELATIONS[CATALOG.name] = pa.schema([CATALOG.schema.field(name) for name in CATALOG_COLUMNS])

_ABOUT = ("information_schema", "pg_catalog")
"""Schemas whose tables tell of tables."""


@dataclass(frozen=True, slots=True)
class FreeQuestion(Question):
    """`params` are handed on as they are: by name, or in their order."""

    params: Params = None
    shows: bool = False
    """Whether it asks which tables there are."""

    def arguments(self, given: dict[str, Any]) -> Any:  # noqa: ARG002  they came with the question
        return self.params


class FreeLake(Lake):
    """A lake that may be asked anything."""

    def select(
        self, query: FreeQuestion, *, account: str, days: tuple[date, date], catalog: Callable[[], pa.Table]
    ) -> Answer:
        """What the SELECT finds over arrival days `days` (both included). `catalog` gives its CATALOG_COLUMNS.

        Raises BadRequest with DuckDB's words, and MovedError.
        """
        first, last = days
        scope = Scope(account, first, self._with_late(first, last))
        given, skipped = dict[str, pa.Table](), list[str]()
        for name in query.reads:
            if name in ROLLUPS:  # Each by itself, for the lake's own questions read one at most.
                found = self._answer(Question(f'FROM "{name}"', (name,)), Scope(account, first, last), {})
                given[name] = found.rows
                skipped += found.skipped
        if CATALOG.name in query.reads:
            given[CATALOG.name] = catalog()
        # Without rows, for their names alone: what it reads is there besides.
        shown = {name: schema.empty_table() for name, schema in _RELATIONS.items() if query.shows}
        scope.given = {**{name: rows for name, rows in shown.items() if name not in query.reads}, **given}
        tables = tuple(name for name in query.reads if name in TABLES)
        try:
            answer = self._answer(FreeQuestion(query.sql, tables, query.params), scope, {})
        except duckdb.Error as error:
            raise BadRequest(str(error)) from error
        return Answer(answer.rows, sorted({*answer.skipped, *skipped}))

    def _explained(self, session: Session, scope: Scope) -> bool:
        # No file makes a value that is not of the type asked for: none need be read to know whose fault that is.
        return not isinstance(sys.exc_info()[1], duckdb.DataError) and super()._explained(session, scope)


def question(sql: str, params: Params = None) -> FreeQuestion:
    """The user's SELECT, and which relations it reads. Raises BadRequest that says what is wrong, and where."""
    with closing(engine.cursor()) as cursor:
        for name, schema in _RELATIONS.items():
            cursor.register(name, schema.empty_table())
        try:
            statements = cursor.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise BadRequest("This is not one SELECT: nothing else is answered, and one at a time.")
            cursor.sql(sql, params=params or None)  # pyright: ignore[reportArgumentType]  a mapping will do, too
            (tree,) = cursor.execute("SELECT json_serialize_sql(?)", [sql]).fetchone() or ("{}",)
        except duckdb.CatalogException as error:
            known = ", ".join(sorted(_RELATIONS))
            raise BadRequest(
                f"{error}\nTables are {known}." if "Table with name" in str(error) else str(error)
            ) from error
        except duckdb.Error as error:
            raise BadRequest(str(error)) from error
    nodes = list(_nodes(json.loads(tree)))
    # Also of those that the query calls its own.
    found = {node["table_name"].lower() for node in nodes if node["type"] == "BASE_TABLE"}
    shows = any(node["type"] == "SHOW_REF" or node.get("schema_name", "").lower() in _ABOUT for node in nodes)
    return FreeQuestion(sql, tuple(sorted(found & _RELATIONS.keys())), params or None, shows)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All that has a type in what DuckDB's parser made of a query."""
    if isinstance(tree, list):
        for each in cast("list[Any]", tree):
            yield from _nodes(each)
    elif isinstance(tree, dict):
        node = cast("dict[str, Any]", tree)
        if "type" in node:
            yield node
        yield from _nodes(list(node.values()))
