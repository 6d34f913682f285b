"""How an act that came by HTTP is written down, before it is done."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.audit import Action, Audit
from daskscope_lambdas.service.tokens import Principal


@house.once
def audit() -> Audit:
    world = house.adapters()
    return Audit(world.objects, world.seals, world.clock)


def record(event: APIGatewayProxyEventV2, by: Principal, action: Action, target: str, **detail: Any) -> None:
    """As Audit.record, with the address that the request came from."""
    audit().record(by, action, target, detail, event.request_context.http.source_ip)
