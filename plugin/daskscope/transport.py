"""One attempt to bring one message to the server, and what became of it.

An attempt never raises and never takes longer than `DEADLINE_S` by much: the sender's thread is all it may hold up.
No redirect is followed, so that the token reaches no other host.
"""

from __future__ import annotations

import email.utils
import json
import time
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import httpx

from daskscope import __version__, wire
from daskscope.compression import Encoding
from daskscope.discovery import is_loopback

DEADLINE_S = 10.0
CONNECT_S = 3.0
MAX_REPLY_BYTES = 64 << 10
MAX_WAIT_S = 300.0
"""The longest that a server's `Retry-After` may ask for."""
BARE_429_S = 60.0

Verdict = Literal["kept", "again", "refused", "denied"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`kept`: the server has it. `again`: try later. `refused`: it will never be taken. `denied`: the token is no
    good."""

    verdict: Verdict
    reason: str
    reply: wire.Reply | None = None
    wait_s: float = 0.0
    """Not before so many seconds."""


class Transport(Protocol):
    """Where messages go."""

    def deliver(self, name: str, body: bytes, encoding: Encoding) -> Outcome:
        """Try once. `name` tells the message from others of this machine (`<cluster>-<boot>-<seq>`)."""
        ...

    def close(self) -> None: ...


class Http:
    """Posts to a server. The client, whose TLS set-up takes 20 ms, is made in the sender's thread."""

    def __init__(self, server: str, token: str | None) -> None:
        self._url = server + wire.PATH
        self._token = token
        self._client: httpx.Client | None = None

    def deliver(self, name: str, body: bytes, encoding: Encoding) -> Outcome:
        del name
        headers = {"content-type": wire.CONTENT_TYPE, "content-encoding": encoding}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        try:
            if self._client is None:
                timeout = httpx.Timeout(DEADLINE_S / 2, connect=CONNECT_S)
                # A reply is read as it comes and has a few bytes: it is not to be compressed.
                headers_of_all = {"user-agent": f"daskscope/{__version__}", "accept-encoding": "identity"}
                # A proxy is for the world outside: what is for this machine stays on it.
                self._client = httpx.Client(
                    timeout=timeout,
                    follow_redirects=False,
                    headers=headers_of_all,
                    trust_env=not is_loopback(self._url),
                )
            until_s = time.monotonic() + DEADLINE_S
            with self._client.stream("POST", self._url, content=body, headers=headers) as response:
                return judge(response.status_code, response.headers, _read(response, until_s))
        except (httpx.LocalProtocolError, ValueError) as error:
            # A header that cannot be sent; the error's own text may quote the token.
            return Outcome("again", f"{type(error).__name__}: the request cannot be sent, is daskscope.token in order?")
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, RuntimeError) as error:
            # RuntimeError: the interpreter is shutting down.
            return Outcome("again", f"{type(error).__name__}: {error}")

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def _read(response: httpx.Response, until_s: float) -> bytes:
    """The start of the body: a server that sends much, or slowly, is not listened to for longer."""
    body = b""
    for chunk in response.iter_raw():  # as it comes: with a size given, a slow server's chunk is never full
        body += chunk
        if len(body) > MAX_REPLY_BYTES or time.monotonic() > until_s:
            break
    return body


def judge(status: int, headers: httpx.Headers, body: bytes) -> Outcome:
    """What a status means for the message: retried are 408, 425, 429 and 5xx; a redirect or any other 4xx is final."""
    if 200 <= status < 300:
        return Outcome("kept", "", _reply(body))
    if status in (401, 403):
        return Outcome("denied", f"HTTP {status}")
    if status in (408, 425, 429) or status >= 500:
        wait_s = _retry_after_s(headers.get("retry-after"))
        return Outcome("again", f"HTTP {status}", wait_s=wait_s or (BARE_429_S if status == 429 else 0.0))
    return Outcome("refused", f"HTTP {status}: {_message(body)}")


def _reply(body: bytes) -> wire.Reply | None:
    """None for anything but a reply: the message is kept all the same."""
    try:
        fields: Any = json.loads(body)
        number, url = fields["id"], fields["url"]
        next_s, wish = fields.get("next_s"), fields.get("wish", [])
        pace_s = float(next_s) if isinstance(next_s, (int, float)) and next_s > 0 else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    if not (isinstance(number, int) and isinstance(url, str) and isinstance(wish, list)):
        return None
    return wire.Reply(id=number, url=url, next_s=pace_s, wish=[item for item in wish if isinstance(item, str)])


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])[:500]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "no reason given"


def _retry_after_s(value: str | None) -> float:
    """Seconds that a Retry-After asks for, as a number or a date, from 0 to MAX_WAIT_S; 0 for what is neither."""
    if value is None:
        return 0.0
    try:
        wait_s = float(value)
    except ValueError:
        try:
            wait_s = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError):
            return 0.0
    return min(max(wait_s, 0.0), MAX_WAIT_S) if wait_s == wait_s else 0.0
