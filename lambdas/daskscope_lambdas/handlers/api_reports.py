"""The JSON routes of reports that somebody keeps here. What changes something, a bearer token alone opens (see
bearers); the files themselves go past these routes, either way."""

from __future__ import annotations

from typing import Any

import msgspec
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, bearers, framing, parameters, posted, reported
from daskscope_lambdas.ports import ReportRow
from daskscope_lambdas.service import records
from daskscope_lambdas.service.reports import Announced

router = APIGatewayHttpRouter()


class _Announced(msgspec.Struct, forbid_unknown_fields=True):
    filename: str
    size_bytes: int
    private: bool = False
    title: str | None = None
    user: str | None = None


class _Change(msgspec.Struct, forbid_unknown_fields=True):
    private: bool


@router.post("/api/v1/<account>/reports")
def announce(account: str) -> Response[str]:
    principal = bearers.bearer(router.current_event, account)
    example = {"filename": "dask-report.html", "size_bytes": 1_200_000, "private": False, "title": "nightly"}
    told = posted.json_object(router.current_event.raw_event, _Announced, example)
    row, upload = reported.keeper().offer(principal, Announced(**msgspec.structs.asdict(told)))
    way = {
        "method": upload.method,
        "url": upload.url,
        "fields": dict(upload.fields),
        "expires": records.iso(upload.expires_at),
    }
    return answering.answer({**_record(row), "upload": way}, 201)


@router.post("/api/v1/<account>/reports/<number>/uploaded")
def uploaded(account: str, number: str) -> Response[str]:
    principal = bearers.bearer(router.current_event, account)
    return answering.answer(_record(reported.keeper().uploaded(principal, reported.id_of(account, number))))


@router.get("/api/v1/<account>/reports")
def reports(account: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    given = router.current_event.query_string_parameters
    limit, before = parameters.limit(given), reported.before(given)
    rows = reported.keeper().page(account, limit + 1, before)  # one more than asked for, to know whether a page follows
    cursor = str(rows[limit - 1].id) if len(rows) > limit else None
    policy = reported.keeper().policy(account)
    return answering.answer({"items": [records.report(row, policy) for row in rows[:limit]], "cursor": cursor})


@router.get("/api/v1/<account>/reports/<number>")
def report(account: str, number: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    row, policy = reported.keeper().find(account, reported.id_of(account, number)), reported.keeper().policy(account)
    url = framing.address(router.current_event, row, policy, download=True)
    return answering.answer({**records.report(row, policy), "download_url": url})


@router.put("/api/v1/<account>/reports/<number>")
def change(account: str, number: str) -> Response[str]:
    principal, report_id = bearers.bearer(router.current_event, account), reported.id_of(account, number)
    private = posted.json_object(router.current_event.raw_event, _Change, {"private": True}).private
    return answering.answer(_record(reported.set_private(router.current_event, principal, report_id, private)))


@router.delete("/api/v1/<account>/reports/<number>")
def delete(account: str, number: str) -> Response[str]:
    principal, report_id = bearers.bearer(router.current_event, account), reported.id_of(account, number)
    row = reported.delete(router.current_event, principal, report_id)
    sentence = f"Report {row.id} is deleted. Where somebody just looked at it, it may show for 60 s more."
    return answering.answer({**_record(row), "sentence": sentence})


def _record(row: ReportRow) -> dict[str, Any]:
    return records.report(row, reported.keeper().policy(row.account))
