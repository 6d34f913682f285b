"""A lake without a server: the same handlers, in the process of who asks, over a lake that is only read.

What the plugin finds by the entry point `daskscope.direct` is `open_lake`.
"""

from __future__ import annotations

import base64
import logging
import threading
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa

from daskscope.errors import BadRequest, NotFound, ServerError
from daskscope_lambdas.adapters.direct import refused
from daskscope_lambdas.env import DirectEnv
from daskscope_lambdas.handlers import errors, house, versions
from daskscope_lambdas.opening import explained, settings_of
from daskscope_lambdas.ports import Clock, Scope, StoreError
from daskscope_lambdas.service.sql import Sql
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import connect
from daskscope_query import free

logger = logging.getLogger("daskscope.direct")

Moment = str | int | float | None
"""Seconds back from now, or a time in ISO 8601."""

_TURN = threading.Lock()
"""The resolver of the handlers keeps its event on its class: one at a time in a process, of whatever lake."""


def open_lake(root: str, *, account: str | None = None, keys: str | None = None) -> Direct:
    """`root`: a lake, or a server's data folder: a path, `s3://bucket/prefix`, or another URI that pyarrow opens.

    `account` may be left out where there is one. `keys`: a folder with the key to the account's code, or `ssm:/path`
    of AWS's Parameter Store; left out, `keys` beside the lake if it is there. Raises DaskscopeError that says what to
    do, ImportError for what is not installed.
    """
    try:
        return Direct(settings_of(root, account, keys))
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("daskscope"):
            raise
        needed = f"Reading a lake without a server needs {error.name}: pip install 'daskscope[direct]'"
        raise ImportError(needed, name=error.name) from error
    except StoreError as error:
        raise explained(error) from error


class Direct:
    """An account of a lake, asked like a server. Many threads may, each in its turn; not over a fork."""

    def __init__(self, settings: DirectEnv, clock: Clock | None = None) -> None:
        self._world = world = connect(settings, clock)
        self._house = house.House(lambda: settings, lambda: world, frank=True)
        with house.entered(self._house):
            # Only now, for in a function of AWS Lambda they make ready what they find in the house.
            from daskscope_lambdas.handlers import api, parameters, reading

            catalog = reading.live_catalog()
        self._handle, self._moment, self._account = api.handler, parameters.moment, settings.account
        self._sql = Sql(
            world.lake_root,
            world.seals,
            world.deletions,
            lambda account: catalog.table(account, free.CATALOG_COLUMNS).select(free.CATALOG_COLUMNS),
        )
        # Who may read the files may read what was done to the account; what changes anything is refused before.
        scopes: tuple[Scope, ...] = ("read", "admin")
        text, _ = mint(world.tokens, world.clock, settings.account, scopes, "of a lake without a server")
        self._bearer = f"Bearer {text}"

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers, body: what the server answers at `path` (`/api/v1/...`), but to what changes anything."""
        event = _event(method, path, query or {}, body or b"", self._bearer)
        if method in ("GET", "HEAD"):
            with _TURN, house.entered(self._house):
                found = self._handle(event, None)
        else:
            found = versions.told(errors.response(errors.problem(refused(), event["requestContext"]["requestId"])))
        text: str = found["body"]
        told = base64.b64decode(text) if found.get("isBase64Encoded") else text.encode()
        return found["statusCode"], found["headers"], told

    def sql(
        self,
        query: str,
        account: str | None = None,
        params: free.Params = None,
        since: Moment = None,
        until: Moment = None,
    ) -> pa.Table:
        """What one SELECT finds in tables, roll-ups and `catalog` of the account, of what was received on the days from
        `since` to `until`.

        Raises BadRequest with DuckDB's words, NotFound for another account, ServerError for a lake that cannot be read.
        """
        if account not in (None, self._account):
            raise NotFound(f"This lake was opened for account {self._account}, and not for {account}.")
        given = {name: str(at) for name, at in (("since", since), ("until", until)) if at is not None}
        try:
            now = self._world.wall.now()
            between = self._moment(given, "since", now), self._moment(given, "until", now)
            answer = self._sql.select(query, self._account, params, *between)
        except errors.BadParameterError as error:
            raise BadRequest(str(error)) from error
        except (StoreError, OSError) as error:
            raise ServerError(f"The lake could not be read: {error}") from error
        if answer.skipped:
            names = ", ".join(answer.skipped)
            logger.warning("Rows are missing: %d files could not be read (%s).", len(answer.skipped), names)
        return answer.rows

    def close(self) -> None:
        """Let go of what was made of it."""
        self._house.made.clear()
        self._world.close()


def _event(method: str, path: str, query: Mapping[str, str], body: bytes, bearer: str) -> dict[str, Any]:
    """As API Gateway makes it, version 2.0, as far as the handlers look."""
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": urlencode(query),
        "headers": {"authorization": bearer},
        "queryStringParameters": dict(query),
        "requestContext": {
            "requestId": uuid.uuid4().hex,
            "stage": "$default",
            "http": {"method": method, "path": path},
        },
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }
