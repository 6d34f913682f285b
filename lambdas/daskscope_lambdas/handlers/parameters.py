"""Query parameters to values. Raises BadParameterError that says what is allowed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import get_args

from daskscope_lambdas.handlers.errors import BadParameterError
from daskscope_lambdas.service.catalog import Filter
from daskscope_lambdas.service.records import Status

Parameters = Mapping[str, str]

_STATES: dict[str, Status] = {state: state for state in get_args(Status)}

MAX_LIMIT = 1000
LONGEST_S = 1e10
"""Three hundred years: as good as for ever, and no date overflows."""


def limit(given: Parameters, default: int = 100) -> int:
    text = given.get("limit")
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MAX_LIMIT:
        return int(text)
    raise BadParameterError(f"limit is {text!r}; allowed: 1 to {MAX_LIMIT}.")


def offset(given: Parameters) -> int:
    """The cursor of lists that come out of the lake."""
    text = given.get("cursor", "0")
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    raise BadParameterError(f"cursor is {text!r}; allowed: the cursor from the page before.")


def since_s(given: Parameters) -> float | None:
    text = given.get("since")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_S:
        raise BadParameterError(f"since is {text!r}; allowed: seconds back from now, like 604800 for a week.")
    return seconds


def wanted(given: Parameters) -> Filter:
    """The filters of the list of clusters; an empty value filters nothing, as from a form."""
    state = given.get("status")
    if state and state not in _STATES:
        raise BadParameterError(f"status is {state!r}; allowed: {', '.join(_STATES)}.")
    return Filter(since_s=since_s(given), user=given.get("user") or None, status=_STATES.get(state or ""))
