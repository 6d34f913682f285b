"""What a page changes at a cluster."""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import auditing, forms, house, pages, reading, visitors
from daskscope_lambdas.service import closing
from daskscope_lambdas.service.tokens import require

router = APIGatewayHttpRouter()


@router.post("/<account>/analytics/clusters/<cluster>/close")
def close(account: str, cluster: str) -> Response[str]:
    event, world = router.current_event, house.adapters()
    visitor = visitors.signed_in(event, account)
    forms.fields(event, visitor.session)
    require(visitor.principal, "control")
    row = reading.catalog().find(account, cluster)
    auditing.record(event, visitor.principal, "cluster.close", str(row.id), cluster=row.uuid)
    closing.ask(world.clusters, world.clock, row, visitor.principal.who, None)
    return pages.redirect(event, f"{account}/analytics/clusters/{row.id}")
