"""The JSON routes of the list of clusters and of one."""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, house, parameters, reading, wanted
from daskscope_lambdas.service import records
from daskscope_lambdas.service.answers import answers
from daskscope_lambdas.service.completeness import completeness
from daskscope_lambdas.service.cost import as_record

router = APIGatewayHttpRouter()


@router.get("/api/v1/<account>/clusters")
def clusters(account: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    given, now = router.current_event.query_string_parameters, house.adapters().clock.now()
    page = wanted.page(account, given, parameters.limit(given))
    items = answering.fitting([{**records.cluster(each.row, now), "cost": each.cost} for each in page.items])
    cursor = page.cursor if len(items) == len(page.items) else page.items[len(items) - 1].cursor
    return answering.answer({"items": items, "cursor": cursor, "as_of": page.as_of, "skipped": [], "total": page.total})


@router.get("/api/v1/<account>/clusters/<cluster>")
def cluster(account: str, cluster: str) -> Response[str]:
    row, now = answering.row(router.current_event, account, cluster), house.adapters().clock.now()
    cost = reading.costs().of(row)
    told = {
        "cost": as_record(cost),
        "answers": answers(row, now, reading.depth().for_answers(row), cost),
        "completeness": completeness(reading.asker(), row, now),
    }
    return answering.answer({**records.cluster(row, now), **told})
