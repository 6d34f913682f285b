"""A server at an address: one HTTP client, one token."""

from __future__ import annotations

from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from daskscope import __version__, wire
from daskscope.discovery import Server, is_loopback
from daskscope.errors import ServerError, ServerUnreachable
from daskscope.foreign import one_line
from daskscope.source import MOST_SAID, Answer

CONNECT_S = 5.0
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "record layer failure")
"""How OpenSSL says that what it reads is no TLS."""


class Remote:
    """A server. Redirects are not followed, so that the token goes nowhere but where the user named, and no cookie is
    kept."""

    def __init__(self, server: Server, timeout_s: float, account: str | None = None) -> None:
        """`account` is the one that is meant where no path names it; None for the token's own."""
        self.server = server
        self._http = httpx.Client(
            base_url=f"{server.url}/api/v1",
            headers={"User-Agent": f"daskscope/{__version__}"}
            | ({"Authorization": f"Bearer {server.token}"} if server.token else {})
            | ({wire.ACCOUNT: account} if account else {}),
            timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S)),
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            # A proxy is for the world outside: what is for this machine stays on it.
            trust_env=not is_loopback(server.url),
        )

    @property
    def name(self) -> str:
        return self.server.url

    @property
    def pages(self) -> str:
        return self.server.pages

    def request(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> Answer:
        try:
            found = self._http.request(method, path, params=dict(query), json=None if body is None else dict(body))
        except httpx.TransportError as error:
            instead = "Is it running (`daskscope serve`), and is daskscope.server its address?"
            if any(words in str(error) for words in _NO_TLS):
                instead = f"Something answers there, but not by TLS: is it http{self.name.removeprefix('https')}?"
            raise ServerUnreachable(
                f"No answer from {self.name} ({self.clean(str(error)) or type(error).__name__}). {instead}"
            ) from error
        except httpx.RequestError as error:
            raise ServerError(f"{self.name} sent an answer that cannot be read: {self.clean(str(error))}.") from error
        return Answer(found.status_code, dict(found.headers), found.content, found.reason_phrase)

    def clean(self, text: object) -> str:
        return one_line(text, self.server.token, MOST_SAID)

    def close(self) -> None:
        self._http.close()
