"""The JSON route that holds clusters or computations against each other."""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, parameters, reading
from daskscope_lambdas.handlers.errors import BadParameterError
from daskscope_lambdas.service.comparison import LEAST, MOST, compare
from daskscope_lambdas.service.computations import is_id

router = APIGatewayHttpRouter()

_ALLOWED = f"allowed: {LEAST} to {MOST} clusters, or as many computations, with commas between"


@router.get("/api/v1/<account>/compare")
def of_account(account: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    given = router.current_event.query_string_parameters
    ids = parameters.several(given, "ids")
    _check(len(ids))
    of_computations = {is_id(each) for each in ids}
    if len(of_computations) == 2:
        raise BadParameterError(f"ids are of clusters and of computations; {_ALLOWED}.")
    find, sides = reading.catalog().find, reading.sides()
    if of_computations == {True}:
        named = [(find(account, reading.computations().cluster_of(account, each)), each) for each in ids]
        kind, known = "computation", sides.computations(named)
    else:
        rows = {row.uuid: row for row in (find(account, each) for each in ids)}
        _check(len(rows))  # A cluster may be named in several ways.
        kind, known = "cluster", sides.clusters(list(rows.values()))
    return answering.answer({**compare(kind, known.sides), "as_of": known.as_of, "skipped": known.skipped})


def _check(n_sides: int) -> None:
    if not LEAST <= n_sides <= MOST:
        raise BadParameterError(f"ids names {n_sides} things, each counted once; {_ALLOWED}.")
