"""Every error as HTTP: the one table, and the one shape."""

from __future__ import annotations

import json
import logging
import math
from dataclasses import dataclass
from typing import Any

from daskscope.errors import (
    BadMessage,
    Conflict,
    Deleted,
    NotClosable,
    NotFound,
    NotLoggedIn,
    PermissionDenied,
    TooLarge,
)
from daskscope_lambdas.ports import ReadOnly, StoreError
from daskscope_lambdas.service.rates import TooOftenError
from daskscope_lambdas.service.report_checks import BadReportError

logger = logging.getLogger("daskscope.handlers")


class BadParameterError(Exception):
    """A query parameter is not of its form."""


class UnsupportedMediaError(Exception):
    """A Content-Type or Content-Encoding that is not taken."""


@dataclass(frozen=True, slots=True)
class Problem:
    status: int
    code: str
    message: str
    place: str | None = None
    wait_s: float | None = None
    """Until it may be asked for again."""

    @property
    def headers(self) -> dict[str, str]:
        if self.wait_s is not None:
            return {"Retry-After": str(max(1, math.ceil(self.wait_s)))}
        return {"WWW-Authenticate": 'Bearer realm="daskscope"'} if self.status == 401 else {}

    def body(self) -> str:
        """The JSON of docs/reference/http-api.md."""
        error = {"code": self.code, "message": self.message} | ({"place": self.place} if self.place else {})
        return json.dumps({"error": error})


_TABLE: tuple[tuple[type[Exception], int, str], ...] = (
    (BadParameterError, 400, "bad-request"),
    (NotLoggedIn, 401, "not-logged-in"),
    (PermissionDenied, 403, "permission-denied"),
    (ReadOnly, 403, "read-only"),
    (Deleted, 410, "deleted"),
    (NotFound, 404, "not-found"),
    (NotClosable, 409, "not-closable"),
    (Conflict, 409, "conflict"),
    (TooLarge, 413, "too-large"),
    (UnsupportedMediaError, 415, "unsupported-media-type"),
    (BadReportError, 422, "bad-report"),
    (BadMessage, 422, "bad-message"),
    (TooOftenError, 429, "too-many-requests"),
)
"""First match wins: Deleted is a NotFound, NotClosable a Conflict, TooLarge a BadMessage. What is not here is our
fault."""


def problem(error: Exception, request_id: str, frank: bool = False) -> Problem:
    """What to answer; logs what is our fault, with its traceback and `request_id`.

    `frank`: who asks is told why a store failed, for it is their own.
    """
    for kind, status, code in _TABLE:
        if isinstance(error, kind):
            place = error.place if isinstance(error, BadMessage) else None
            return Problem(status, code, str(error), place, error.wait_s if isinstance(error, TooOftenError) else None)
    if frank and isinstance(error, StoreError | OSError):
        return Problem(500, "server-error", f"The lake could not be read: {error}")
    logger.error("Request %s failed.", request_id, exc_info=error)
    return Problem(
        500, "server-error", f"The server failed; its log has the reason under request {request_id}. Try again."
    )


def response(found: Problem) -> dict[str, Any]:
    """As API Gateway v2 wants it."""
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store", **found.headers}
    return {"statusCode": found.status, "headers": headers, "body": found.body(), "isBase64Encoded": False}
