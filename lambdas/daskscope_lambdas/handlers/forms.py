"""What a page posts. Another site's page can post here too, with the cookies of whoever looks at it: what came from
elsewhere is refused, and so is what lacks the word that only our own pages hold."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from daskscope.errors import BadMessage, PermissionDenied, TooLarge
from daskscope_lambdas.handlers import house
from daskscope_lambdas.handlers.errors import UnsupportedMediaError
from daskscope_lambdas.service.base62 import base62

TYPE = "application/x-www-form-urlencoded"
MAX_BYTES = 64 << 10
MAX_FIELDS = 100
_ELSEWHERE = "This was sent from a page of another site, so nothing was changed: open the page here and send it again."
_STALE = "This page is of an earlier sign-in, so nothing was changed: load it again and send it then."


def fields(event: APIGatewayProxyEventV2, session: str | None) -> dict[str, str]:
    """The form's fields. `session`: text of the session of who posts, None for somebody who is not signed in.

    Raises PermissionDenied for what no page of ours sent, UnsupportedMediaError, TooLarge, BadMessage.
    """
    _check_whence(event)
    given = _decoded(event)
    if session is not None and not hmac.compare_digest(given.get("csrf", "").encode(), csrf(session).encode()):
        raise PermissionDenied(_STALE)
    return given


def csrf(session: str) -> str:
    """What a page's forms hold in the field `csrf`: nobody can tell it who does not know the session."""
    digest = hmac.digest(session.encode(), b"csrf", hashlib.sha256)
    return base62(int.from_bytes(digest), 43)


def _check_whence(event: APIGatewayProxyEventV2) -> None:
    site = event.headers.get("sec-fetch-site")
    origin = event.headers.get("origin")
    if site not in (None, "same-origin", "none") or not (origin is None or _is_own(origin, event.headers)):
        raise PermissionDenied(_ELSEWHERE)


def _is_own(origin: str, headers: Mapping[str, str]) -> bool:
    """A proxy may have changed the host that was asked for, and then `address` tells it. Browsers leave the usual port
    out of both."""
    address = urlsplit(house.env().address)
    own = [f"{address.scheme}://{address.netloc}"] if address.netloc else []
    schemes = ("https",) if house.env().world == "aws" else ("https", "http")
    own += [f"{scheme}://{headers['host']}" for scheme in schemes if headers.get("host")]
    return origin.lower() in (each.lower() for each in own)


def _decoded(event: APIGatewayProxyEventV2) -> dict[str, str]:
    kind = event.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != TYPE:
        raise UnsupportedMediaError(f"Content-Type {kind!r} is not taken: pages send {TYPE}.")
    text = event.get("body") or ""
    if len(text) > MAX_BYTES * 2:
        raise TooLarge(f"The form has over {MAX_BYTES} bytes.")
    try:
        body = base64.b64decode(text, validate=True) if event.is_base64_encoded else text.encode()
        if len(body) > MAX_BYTES:
            raise TooLarge(f"The form has over {MAX_BYTES} bytes.")
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except TooLarge:
        raise
    except ValueError as error:
        raise BadMessage(f"The form could not be read: {error}.") from error
    given = dict(pairs)
    if len(given) < len(pairs):
        raise BadMessage("The form has a field twice.")
    return given
