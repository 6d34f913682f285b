"""What an answer says: a JSON object, a page of HTML, or what went wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from daskscope import __version__
from daskscope.api_version import API, API_HEADER, VERSION_HEADER
from daskscope.errors import (
    BadRequest,
    Conflict,
    DaskscopeError,
    Deleted,
    NotClosable,
    NotFound,
    NotLoggedIn,
    PermissionDenied,
    ServerError,
    TooLarge,
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
    413: TooLarge,
    422: BadRequest,
}
"""HTTP status to error; any other that is not 2xx is a ServerError."""
_BY_CODE: Mapping[str, type[DaskscopeError]] = {"conflict": Conflict}
"""Where one status has several."""

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


def check_is_ours(answer: Answer, source: Source) -> None:
    """Before somebody logs in. Raises ServerError for what is none of a daskscope server, which names its release."""
    if _is_a_stranger_s(answer):
        raise ServerError(_nothing_said(answer, source))


def _is_a_stranger_s(answer: Answer) -> bool:
    """Whether it is none of a daskscope server; where that is down or busy, another may speak for it."""
    return VERSION_HEADER.lower() not in answer.headers and answer.status not in (429, 500, 502, 503, 504)


def _nothing_said(answer: Answer, source: Source) -> str:
    """What there is to say of an answer that says nothing of what went wrong."""
    found = f"{source.name} answered HTTP {answer.status} {source.clean(answer.reason)}".rstrip()
    if not (isinstance(source, Remote) and _is_a_stranger_s(answer)):
        return f"{found}."
    return (
        f"{found} without the header {VERSION_HEADER}, so it is no daskscope server, or something stands before it "
        "that answers in its place: is the address right, with its path?"
    )


def html(answer: Answer, source: Source, data: str) -> bytes:
    """The HTML that an answer is. Raises DaskscopeError."""
    _check_version(answer, source)
    if not 200 <= answer.status < 300:
        raise _error(answer, source, data)
    if not answer.headers.get("content-type", "").startswith("text/html"):
        raise ServerError(f"{source.name} answered HTTP {answer.status} without HTML: is it a daskscope server?")
    return answer.body


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
        said = _object(answer, source)["error"]
        message, code = source.clean(said["message"]), said.get("code")
    except (DaskscopeError, KeyError, TypeError, AttributeError):
        message, code = "", None
    if answer.status == 404 and _NO_ROUTE.match(message) and (older := _older(answer, source)):
        return older
    if not message:
        message = _nothing_said(answer, source)
    if answer.status == 401 and isinstance(source, Remote):
        message += f" {where_tokens_are(source.server, data)}"
    kind = _BY_CODE.get(code) if isinstance(code, str) else None
    return (kind or ERRORS.get(answer.status, ServerError))(message)


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
