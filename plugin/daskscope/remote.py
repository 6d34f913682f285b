"""A server at an address: one HTTP client, one token."""

from __future__ import annotations

from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from daskscope import __version__
from daskscope.discovery import Server, is_loopback
from daskscope.errors import ServerError, ServerUnreachable
from daskscope.foreign import one_line
from daskscope.source import MOST_SAID, Answer

CONNECT_S = 5.0


class Remote:
    """A server. Redirects are not followed, so that the token goes nowhere but where the user named, and no cookie is
    kept."""

    def __init__(self, server: Server, timeout_s: float) -> None:
        self.server = server
        self._http = httpx.Client(
            base_url=f"{server.url}/api/v1",
            headers={"User-Agent": f"daskscope/{__version__}"}
            | ({"Authorization": f"Bearer {server.token}"} if server.token else {}),
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
    def pages(self) -> str | None:
        return self.server.url

    def request(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> Answer:
        try:
            found = self._http.request(method, path, params=dict(query), json=None if body is None else dict(body))
        except httpx.TransportError as error:
            raise ServerUnreachable(
                f"No answer from {self.name} ({self.clean(str(error)) or type(error).__name__}). "
                "Is it running (`daskscope serve`), and is daskscope.server its address?"
            ) from error
        except httpx.RequestError as error:
            raise ServerError(f"{self.name} sent an answer that cannot be read: {self.clean(str(error))}.") from error
        return Answer(found.status_code, dict(found.headers), found.content, found.reason_phrase)

    def clean(self, text: object) -> str:
        return one_line(text, self.server.token, MOST_SAID)

    def close(self) -> None:
        self._http.close()
