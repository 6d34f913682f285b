"""What became of one attempt, told from a server's answer, whatever it answers.

Every figure of an answer is clamped or left out, for a server may be anybody's; nothing here raises.
"""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from daskscope import wire
from daskscope.compression import SAMPLED
from daskscope.foreign import one_line

MAX_WAIT_S = 300.0
"""The longest that a server's `Retry-After` may ask for."""
BARE_429_S = 60.0
MAX_WISHES, MAX_WISH, MAX_PAGE = 20, 100, 500
"""Of a reply: wishes that are looked at; characters of one, and of its `url`."""
MAX_ID = (1 << 53) - 1
MIN_IDLE_S, MAX_IDLE_S = 60.0, 1e9
"""What a server may say of how long a cluster idles: nobody's policy closes one at once."""

Verdict = Literal["kept", "again", "plain", "split", "refused", "denied"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`kept`: a daskscope server has it, or a file. `again`: try later. `plain`: not in this encoding, but in one that
    every server takes. `split`: not in one piece. `refused`: it will never be taken. `denied`: the token is no good."""

    verdict: Verdict
    reason: str
    reply: wire.Reply | None = None
    wait_s: float = 0.0
    """Not before so many seconds."""
    status: int = field(default=0, compare=False)
    """Of HTTP; 0 where there was no answer."""


def judge(
    status: int,
    retry_after: str | None,
    body: bytes,
    encoding: str = "",
    token: str | None = None,
    account: str | None = None,
) -> Outcome:
    """What an answer means for a message sent in `encoding`: retried are 408, 425, 429, 5xx and a 2xx without a reply
    (a page to log in at, say), and in parts 413; a redirect or any other 4xx is final, but what came after the sample
    may come plain first: something on the way may not know that encoding, and has more than 415 to say so.

    `token` is what the message was sent with: a proxy may show it in its error. `account` is the one that it was sent
    to by name: 404 then says that there is none for this token, which is no fault of the message.
    """
    is_of_account = status == 404 and account is not None
    found = _denied(status, body, token) if is_of_account else _judge(status, retry_after, body, token)
    found = replace(found, status=status)
    if encoding in SAMPLED and (found.verdict in ("refused", "denied") or status == 501):
        return replace(found, verdict="plain", wait_s=0.0)
    return found


def _judge(status: int, retry_after: str | None, body: bytes, token: str | None) -> Outcome:
    if 200 <= status < 300:
        reply = _reply(body, token)
        if reply is not None:
            return Outcome("kept", "", reply)
        return Outcome("again", f"HTTP {status} and no reply of a daskscope server")
    if status in (401, 403):
        return _denied(status, body, token)
    if status == 413:
        return Outcome("split", f"HTTP 413: {_message(body, token)}")
    if status in (408, 425, 429) or status >= 500:
        wait_s = _retry_after_s(retry_after)
        return Outcome("again", f"HTTP {status}", wait_s=wait_s or (BARE_429_S if status == 429 else 0.0))
    return Outcome("refused", f"HTTP {status}: {_message(body, token)}")


def _reply(body: bytes, token: str | None) -> wire.Reply | None:
    """None for anything but a reply: whoever sent it, nobody knows that the message is kept."""
    try:
        fields: Any = json.loads(body)
        number, page = fields["id"], fields["url"]
        asked = [fields.get(name) for name in ("next_s", "wish", "accepts", "idle_timeout_s")]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    next_s, wish, accepts, idle_timeout_s = asked
    if not (type(number) is int and 0 <= number <= MAX_ID and isinstance(page, str) and _is_page(page, token)):
        return None
    pace_s, idle_s = _number(next_s), _number(idle_timeout_s)
    return wire.Reply(
        id=number,
        url=page,
        next_s=pace_s if pace_s is not None and pace_s > 0 else None,
        wish=_texts(wish, lambda text: len(text) <= MAX_WISH),
        accepts=_texts(accepts, lambda text: text in SAMPLED),
        idle_timeout_s=min(max(idle_s, MIN_IDLE_S), MAX_IDLE_S) if idle_s is not None and idle_s > 0 else None,
    )


def _is_page(text: str, token: str | None) -> bool:
    """It is shown to people, in notebooks."""
    return len(text) <= MAX_PAGE and text.isascii() and " " not in text and text == one_line(text, token)


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    except OverflowError:
        return None


def _texts(value: object, is_good: Callable[[str], bool]) -> list[str]:
    first: list[Any] = value[:MAX_WISHES] if isinstance(value, list) else []
    return [item for item in first if isinstance(item, str) and is_good(item)]


def _denied(status: int, body: bytes, token: str | None) -> Outcome:
    """With what the server says of it, without its full stop: it goes into a sentence of the log."""
    said = _said(body, token).removesuffix(".")
    return Outcome("denied", f"HTTP {status}: {said}" if said else f"HTTP {status}")


def _message(body: bytes, token: str | None) -> str:
    return _said(body, token) or "no reason given"


def _said(body: bytes, token: str | None) -> str:
    try:
        return one_line(json.loads(body)["error"]["message"], token)
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def _retry_after_s(value: str | None) -> float:
    """Seconds that a Retry-After asks for, as a number or a date, from 0 to MAX_WAIT_S; 0 for what is neither."""
    if value is None:
        return 0.0
    try:
        wait_s = float(value)
    except ValueError:
        try:
            wait_s = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return min(max(wait_s, 0.0), MAX_WAIT_S) if wait_s == wait_s else 0.0
