"""What an answer says: a JSON object, or what went wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from daskscope import __version__
from daskscope.api_version import API, API_HEADER, VERSION_HEADER
from daskscope.errors import (
    BadRequest,
    DaskscopeError,
    Deleted,
    NotClosable,
    NotFound,
    NotLoggedIn,
    PermissionDenied,
    ServerError,
    VersionMismatch,
)
from daskscope.remote import Remote
from daskscope.source import Answer, Source
from daskscope.whence import where_tokens_are

ERRORS: Mapping[int, type[DaskscopeError]] = {
    400: BadRequest,
    401: NotLoggedIn,
    403: PermissionDenied,
    404: NotFound,
    409: NotClosable,
    410: Deleted,
    422: BadRequest,
}
"""HTTP status to error; any other that is not 2xx is a ServerError."""

_NO_ROUTE = re.compile(r"Nothing answers [A-Z]+ /api/")
"""How a server says that it has no such route."""


def told(answer: Answer, source: Source, data: str, needs: Mapping[str, type]) -> dict[str, Any]:
    """The JSON object of an answer, with the keys that it `needs`; `data` is the user's data folder. Raises
    DaskscopeError."""
    _check_version(answer, source)
    if not 200 <= answer.status < 300:
        raise _error(answer, source, data)
    found = _object(answer, source)
    if missing := [name for name, kind in needs.items() if not _is_of(found.get(name), kind)]:
        raise _not_ours(answer, source, f"an object without {', '.join(missing)}")
    return found


def _is_of(value: Any, kind: type) -> bool:
    """A list is one of records."""
    return isinstance(value, kind) and (kind is not list or all(isinstance(row, dict) for row in value))


def _not_ours(answer: Answer, source: Source, what: str) -> ServerError:
    return ServerError(
        f"{source.name} answered HTTP {answer.status} with {what}, which is not the API's JSON: "
        "is it a daskscope server?"
    )


def _check_version(answer: Answer, source: Source) -> None:
    """What another API answers may not be what it is taken for; who names none is judged by the answer."""
    theirs = answer.headers.get(API_HEADER.lower(), "")
    if not (theirs.isascii() and theirs.isdigit()) or int(theirs) == API:
        return
    if int(theirs) < API:
        raise _to_upgrade(answer, source)
    release = source.clean(answer.headers.get(VERSION_HEADER.lower())) or "a later release"
    raise VersionMismatch(
        f"{source.name} runs daskscope {release}, whose answers this client, {__version__}, does not understand. "
        "Upgrade the client: pip install -U daskscope"
    )


def _object(answer: Answer, source: Source) -> dict[str, Any]:
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _not_ours(answer, source, "something that is no object")
    return found


def _error(answer: Answer, source: Source, data: str) -> DaskscopeError:
    if 300 <= answer.status < 400 and "location" in answer.headers:
        target = source.clean(answer.headers["location"])
        return ServerError(
            f"{source.name} redirects to {target}, which is not followed, for the token is not for it. "
            "If that is the server, set daskscope.server to it."
        )
    try:
        message = source.clean(_object(answer, source)["error"]["message"])
    except (DaskscopeError, KeyError, TypeError):
        message = ""
    if answer.status == 404 and _NO_ROUTE.match(message) and (older := _older(answer, source)):
        return older
    if not message:
        message = f"{source.name} answered HTTP {answer.status} {source.clean(answer.reason)}."
    if answer.status == 401 and isinstance(source, Remote):
        message += f" {where_tokens_are(source.server, data)}"
    return ERRORS.get(answer.status, ServerError)(message)


def _older(answer: Answer, source: Source) -> VersionMismatch | None:
    """If the server is of an earlier release: that is why it has no such route."""
    release = source.clean(answer.headers.get(VERSION_HEADER.lower()))
    if release and _numbers(release) >= _numbers(__version__):
        return None
    return _to_upgrade(answer, source)


def _to_upgrade(answer: Answer, source: Source) -> VersionMismatch:
    release = source.clean(answer.headers.get(VERSION_HEADER.lower()))
    return VersionMismatch(
        f"{source.name} runs daskscope {release or 'of an earlier release'} and does not know what this client, "
        f"{__version__}, asks for. Upgrade the server: pip install -U 'daskscope[serve]', or deploy anew."
    )


def _numbers(release: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", release)[:3]]
