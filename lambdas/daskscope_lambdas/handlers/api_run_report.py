"""A run as one HTML file, made of what the lake has of it."""

from __future__ import annotations

import re
from datetime import datetime

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, house, parameters, reading
from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.run_report import Readers, RunReports
from daskscope_lambdas.web import run_report

router = APIGatewayHttpRouter()


@router.get("/api/v1/<account>/clusters/<cluster>/report")
def of_cluster(account: str, cluster: str) -> Response[str]:
    return _file(answering.row(router.current_event, account, cluster), None)


@router.get("/api/v1/<account>/computations/<computation>/report")
def of_computation(account: str, computation: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    uuid = reading.computations().cluster_of(account, computation)
    return _file(reading.catalog().find(account, uuid), computation)


def _file(row: ClusterRow, computation: str | None) -> Response[str]:
    tasks = parameters.switch(router.current_event.query_string_parameters, "tasks") or False
    run = RunReports(house.adapters().clock, _readers).of(row, computation, tasks=tasks)
    name = re.sub(r"[^0-9A-Za-z-]", "-", computation or f"cluster-{row.id}")
    headers = {
        # As its own policy has it, and besides out of reach of our pages: names in it are those of users.
        "Content-Security-Policy": "sandbox allow-scripts; frame-ancestors 'self'",
        "Content-Disposition": f'inline; filename="daskscope-{name}.html"',
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
    return Response(200, "text/html; charset=utf-8", run_report.render(run), headers)


def _readers(until: datetime | None) -> Readers:
    return Readers(
        asker=reading.asker().at(until),
        queries=reading.queries(until),
        computations=reading.computations(until),
        observed=reading.observed(until),
        timelines=reading.timelines(until),
        profiles=reading.profiles(until),
        costs=reading.costs(until),
    )
