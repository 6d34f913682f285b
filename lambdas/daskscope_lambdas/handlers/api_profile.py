"""The JSON routes of profiles: of one cluster, and of all of an account."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, house, parameters, reading
from daskscope_lambdas.service.found import Found
from daskscope_lambdas.service.profiles import By, Profile, Wanted

router = APIGatewayHttpRouter()

_FORMS = ("stacks", "tree")
_BY: dict[str, By] = {"prefix": "prefix", "user": "user"}


@router.get("/api/v1/<account>/clusters/<cluster>/profile")
def of_cluster(account: str, cluster: str) -> Response[str]:
    row, wanted = answering.row(router.current_event, account, cluster), _wanted(("prefix",))
    computation = _given().get("computation") or None
    return _page(lambda until: reading.profiles(until).of_cluster(row, wanted, computation))


@router.get("/api/v1/<account>/profile")
def of_account(account: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    wanted = _wanted(("prefix", "user"))
    return _page(lambda until: reading.profiles(until).of_account(account, wanted))


def _page(profile: Callable[[datetime | None], Profile]) -> Response[str]:
    is_tree = parameters.one_of(_given(), "form", _FORMS) == "tree"

    def ask(limit: int, offset: int, until: datetime | None) -> Found:
        found = profile(until)
        return found.trees().part(limit, offset) if is_tree else found.stacks(limit, offset)

    return answering.lake_page(router.current_event, ask)


def _wanted(allowed: Sequence[str]) -> Wanted:
    given = _given()
    since, until = parameters.between(given, parameters.position(given, house.adapters().wall.now()).asked_at)
    return Wanted(
        prefix=given.get("prefix") or None,
        user=given.get("user") or None,
        by=_BY.get(parameters.one_of(given, "by", allowed) or ""),
        since=since,
        until=until,
    )


def _given() -> dict[str, str]:
    return router.current_event.query_string_parameters
