"""What the JSON routes and the pages of reports share: which report is asked about, and how one is changed."""

from __future__ import annotations

import re

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from daskscope.errors import NotFound
from daskscope_lambdas.handlers import auditing, house
from daskscope_lambdas.handlers.errors import BadParameterError
from daskscope_lambdas.handlers.parameters import Parameters
from daskscope_lambdas.ports import ReportRow
from daskscope_lambdas.service.reports import ReportKeeper
from daskscope_lambdas.service.tokens import Principal

_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def keeper() -> ReportKeeper:
    return ReportKeeper(house.adapters())


def id_of(account: str, text: str) -> int:
    """A report's number, as it stands in a path. Raises NotFound."""
    if not _NUMBER.fullmatch(text):
        raise NotFound(f"Account {account} has no report {text}.")
    return int(text)


def before(given: Parameters) -> int | None:
    """`cursor`: the number before which a page of the list begins; None for the latest. Raises BadParameterError."""
    text = given.get("cursor")
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise BadParameterError(f"cursor is {text!r}; allowed: the cursor from the page before.")
    return int(text)


def set_private(event: APIGatewayProxyEventV2, principal: Principal, id: int, private: bool) -> ReportRow:
    """Raises PermissionDenied, NotFound."""

    def note(row: ReportRow) -> None:
        told = {"filename": row.filename, "user": row.user, "private": private}
        auditing.record(event, principal, "report.visibility", str(row.id), **told)

    return keeper().set_private(principal, id, private, note)


def delete(event: APIGatewayProxyEventV2, principal: Principal, id: int) -> ReportRow:
    """Raises PermissionDenied, NotFound."""

    def note(row: ReportRow) -> None:
        told = {"filename": row.filename, "user": row.user, "private": row.private}
        auditing.record(event, principal, "report.delete", str(row.id), **told)

    return keeper().delete(principal, id, note)
