"""Which release answers: what every response carries, whoever made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import daskscope
from daskscope.api_version import API, API_HEADER, VERSION_HEADER

HEADERS: Mapping[str, str] = {VERSION_HEADER: daskscope.__version__, API_HEADER: str(API)}


def told(response: Mapping[str, Any]) -> dict[str, Any]:
    """A response as API Gateway v2 wants it, with the release and its API among its headers."""
    return {**response, "headers": {**(response.get("headers") or {}), **HEADERS}}
