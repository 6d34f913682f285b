"""What a list of clusters is asked for: the parameters that the JSON route and the page have in common."""

from __future__ import annotations

from typing import get_args

from daskscope_lambdas.handlers import house, parameters, reading
from daskscope_lambdas.handlers.errors import BadParameterError
from daskscope_lambdas.service.catalog import LATEST_START, SORTS, Filter, Page
from daskscope_lambdas.service.records import Status

_STATES: dict[str, Status] = {state: state for state in get_args(Status)}


def page(account: str, given: parameters.Parameters, limit: int) -> Page:
    """The page of `account`'s clusters that these parameters ask for. Raises BadParameterError."""
    cursor, sort = given.get("cursor") or None, parameters.sort(given, SORTS, LATEST_START)
    wanted = _filter(given, house.adapters().wall.now())
    try:
        return reading.catalog().page(account, wanted, limit, cursor, sort)
    except ValueError as error:
        raise BadParameterError(
            f"cursor is {cursor!r}; allowed: the cursor from the page before of a list sorted alike."
        ) from error


def _filter(given: parameters.Parameters, now: float) -> Filter:
    """An empty value filters nothing, as from a form."""
    since, until = parameters.between(given, now)
    state, tag = parameters.one_of(given, "status", list(_STATES)), given.get("tag") or None
    if tag and tag.startswith("="):
        raise BadParameterError(f"tag is {tag!r}, without a key; allowed: a key, or key=value, like team=weather.")
    return Filter(
        since=since,
        until=until,
        user=given.get("user") or None,
        status=_STATES.get(state or ""),
        kind=given.get("kind") or None,
        name=given.get("name") or None,
        tag=tag,
        part=given.get("q") or None,
    )
