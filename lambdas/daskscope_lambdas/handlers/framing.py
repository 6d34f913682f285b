"""Where a report's file is got from: an origin that has nothing but reports, whichever way this server was reached."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from daskscope_lambdas.handlers import house
from daskscope_lambdas.ports import Missing, ReportRow
from daskscope_lambdas.service.report_policy import ReportPolicy

_NAME = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")
"""What a host may be called that stands in an address, and in a header of our page's."""
_OTHER_NAMES = {"127.0.0.1": "localhost", "localhost": "127.0.0.1", "[::1]": "localhost"}
"""A browser's cookies do not tell ports apart, so on one machine the other port goes by the host's other name."""


def origin(event: APIGatewayProxyEventV2) -> str | None:
    """For whoever sent this request: a URL without a slash at its end; None where no report can be got."""
    told = house.env().reports
    if not told.startswith(":"):
        return told or None
    host = _name(event.headers.get("host", ""))
    return f"http://{_OTHER_NAMES.get(host, host)}{told}" if _NAME.fullmatch(host) else None


def address(event: APIGatewayProxyEventV2, row: ReportRow, policy: ReportPolicy, download: bool = False) -> str | None:
    """Where a browser gets the report's file, to see it or to save it; None if there is no origin, or no file."""
    here = origin(event)
    if here is None or row.kept_at is None:
        return None
    name = row.filename if download else None
    try:
        found = house.adapters().report_files.address(row.link, policy.is_private(row), name)
    except Missing:
        return None
    return found if urlsplit(found).scheme else f"{here}/{found.removeprefix('/')}"


def _name(host: str) -> str:
    """A Host header without its port."""
    return host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
