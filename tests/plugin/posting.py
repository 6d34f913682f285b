"""A try or more of the transport, and what a server answers to it."""

import contextlib

from daskscope.compression import Encoding
from daskscope.transport import Http, Outcome
from tests.plugin import rig

PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
TOKEN = "dst_very-secret"


REPLY = {"id": 7, "url": "/acme/clusters/7", "next_s": 30, "wish": ["identity"]}


TAKEN = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(rig.REPLY), rig.REPLY)


def post(url: str, token: str | None = TOKEN, times: int = 1, encoding: Encoding = "zstd") -> Outcome:
    with contextlib.closing(Http(url, token)) as http:
        return [http.deliver("c-b-1", b"body", encoding) for _ in range(times)][-1]
