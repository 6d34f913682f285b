"""What a posted request holds: its type, encoding and size are checked before anything of its body is decoded."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from daskscope import wire
from daskscope.compression import SAMPLED
from daskscope.errors import BadMessage, TooLarge
from daskscope_lambdas.handlers.errors import UnsupportedMediaError

S = TypeVar("S")

_TYPES = (wire.CONTENT_TYPE, "application/json")
_ENCODINGS = ("", "identity", "zstd", "gzip", *SAMPLED)
_DIGITS = re.compile(r"[0-9]{1,15}")
_MAX_BASE64 = -(-wire.MAX_BODY_BYTES // 3) * 4


def body(event: Mapping[str, Any]) -> tuple[bytes, str]:
    """The body of an API Gateway v2 event, and its Content-Encoding in lower case, empty for none.

    No Content-Type is as good as the right one. Raises UnsupportedMediaError, TooLarge, BadMessage for what is not
    the base64 that it claims to be.
    """
    encoding = _encoding(event.get("headers") or {})
    text: str = event.get("body") or ""
    in_base64 = bool(event.get("isBase64Encoded"))
    if len(text) > (_MAX_BASE64 if in_base64 else wire.MAX_BODY_BYTES):
        raise TooLarge(f"The body has over {wire.MAX_BODY_BYTES} bytes: send less at a time.")
    if not in_base64:
        if text and encoding not in ("", "identity"):
            # The gateway took the compressed bytes for text, by their Content-Type: what is left of them is no use.
            raise UnsupportedMediaError(
                f"A body in {encoding} came as text: send it with Content-Type {wire.CONTENT_TYPE!r}."
            )
        return text.encode("utf-8", "surrogatepass"), encoding
    try:
        return base64.b64decode(text, validate=True), encoding
    except ValueError as error:
        raise BadMessage(f"The body is not base64: {error}.") from error


def json_object(event: Mapping[str, Any], shape: type[S], example: Mapping[str, Any]) -> S:
    """The JSON that was posted where people post by hand: plain, and of that shape. Nothing at all is as good as {}.

    Raises UnsupportedMediaError, TooLarge, BadMessage that shows `example`.
    """
    posted, encoding = body(event)
    if encoding not in ("", "identity"):
        raise UnsupportedMediaError(f"Content-Encoding {encoding!r} is not taken here: send none.")
    try:
        return msgspec.json.decode(posted.strip() or b"{}", type=shape)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `")
        place = place.rstrip("`") or "$"
        told = f"What was posted is not as it should be at {place}: {text}. Like this it is: {json.dumps(example)}."
        raise BadMessage(told, place) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(f"The body is not JSON like {json.dumps(example)}: {error}.") from error


def account(event: Mapping[str, Any]) -> str | None:
    """Which account the sender says it is for; None for none, which is that of the token."""
    return ((event.get("headers") or {}).get(wire.ACCOUNT.lower()) or "").strip() or None


def sent_at_ms(event: Mapping[str, Any]) -> int | None:
    """What the sender's clock showed when it sent this; None for none that a clock can show: no message is refused
    for it."""
    told = ((event.get("headers") or {}).get(wire.SENT_AT.lower()) or "").strip()
    if not _DIGITS.fullmatch(told):
        return None
    return ms if (ms := int(told)) <= wire.LATEST_MS else None


def _encoding(headers: Mapping[str, str | None]) -> str:
    kind = (headers.get("content-type") or wire.CONTENT_TYPE).partition(";")[0].strip().lower()
    if kind not in _TYPES:
        raise UnsupportedMediaError(f"Content-Type {kind!r} is not taken: send {' or '.join(_TYPES)}.")
    encoding = (headers.get("content-encoding") or "").strip().lower()
    if encoding not in _ENCODINGS:
        raise UnsupportedMediaError(f"Content-Encoding {encoding!r} is not taken: send zstd, gzip or none.")
    return encoding
