"""B14: proxies of a company, an authority of its own, and certificates that are no good."""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from daskscope import testing, wire
from daskscope.compression import compress
from daskscope.transport import Http
from daskscope_lambdas.testing import FakeClock
from tests.faults.certificates import Authority
from tests.faults.proxy import Proxy
from tests.faults.row import Row
from tests.faults.server import Server, serving
from tests.faults.tunnel import Tunnel

ELSEWHERE = "daskscope.test"
"""A name that no resolver has: only through a proxy is it anywhere."""


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    url: str
    """With the ports of the proxies for `{plain}` and `{tls}`."""
    delivered: bool
    host: str = "localhost"
    """Of the server's certificate."""
    expired: bool = False
    known: bool = True
    """Whether `SSL_CERT_FILE` names the authority."""
    proxied: bool = False
    """Whether it is to go through the web proxy that the environment names."""
    without: str = ""
    """`NO_PROXY`."""


CASES = (
    _Case("custom-ca", "https://localhost:{tls}", delivered=True),
    _Case("unknown-ca", "https://localhost:{tls}", delivered=False, known=False),
    _Case("expired", "https://localhost:{tls}", delivered=False, expired=True),
    _Case("other-name", "https://localhost:{tls}", delivered=False, host="elsewhere.test"),
    _Case("http-proxy", f"http://{ELSEWHERE}", delivered=True, proxied=True),
    _Case("https-proxy", f"https://{ELSEWHERE}", delivered=True, host=ELSEWHERE, proxied=True),
    _Case("https-proxy-expired", f"https://{ELSEWHERE}", delivered=False, host=ELSEWHERE, expired=True, proxied=True),
    _Case("https-proxy-unknown-ca", f"https://{ELSEWHERE}", delivered=False, host=ELSEWHERE, known=False, proxied=True),
    _Case("proxy-not-for-loopback", "http://127.0.0.1:{plain}", delivered=True),
    _Case("no-proxy", f"http://{ELSEWHERE}", delivered=False, without=ELSEWHERE),
)


@dataclass(frozen=True, slots=True)
class _Came:
    as_told: bool
    token_bytes: int
    """Of it, in what anybody could read over a link that was not verified."""


def run(short: bool) -> Row:
    """The same in both forms: it takes no time."""
    del short
    with TemporaryDirectory(prefix="faults-") as folder, serving(FakeClock()) as server:
        authority = Authority(Path(folder))
        came = {case.name: _try(case, server, authority) for case in CASES}
        server.settle()
        rows = [row["seq"] for row in server.rows("samples")]
    stored = set(rows)
    delivered = {number for number, case in enumerate(CASES) if case.delivered}
    otherwise = [name for name, it in came.items() if not it.as_told]
    token_bytes = sum(it.token_bytes for it in came.values())
    return Row(
        id="B14",
        what="proxy variables, an authority of one's own, expired, unknown and wrong certificates",
        tried=len(CASES),
        lost=len(delivered - stored),
        doubled=len(rows) - len(stored),
        held=not otherwise and not token_bytes and stored == delivered,
        figures={
            "delivered": len(stored),
            "refused": len(CASES) - len(stored),
            "token_bytes_over_unverified_links": token_bytes,
            **dict.fromkeys(otherwise, "not as promised"),
        },
    )


def _try(case: _Case, server: Server, authority: Authority) -> _Came:
    body, encoding = compress(wire.encode(testing.message(seq=CASES.index(case))), ())
    plain, secure = Proxy(server.port), Proxy(server.port, tls=authority.context(case.host, expired=case.expired))
    behind = secure if case.url.startswith("https") else plain
    tunnel = Tunnel(behind.port)
    with plain.running(), secure.running(), tunnel.running(), _environment(case, tunnel, authority):
        transport = Http(case.url.format(plain=plain.port, tls=secure.port), server.token)
        outcome = transport.deliver("name", body, encoding)
        transport.close()
    used = bool(tunnel.asked)
    as_told = (outcome.verdict == "kept") == case.delivered and used == case.proxied
    # What is verified is for the server alone; a plain link is verified by nobody, and was asked for.
    unverified = tunnel.heard if case.url.startswith("https") else b""
    exposed = server.token.encode() in unverified
    if not case.delivered and behind.n_plain_bytes:
        exposed = True
    return _Came(as_told, len(server.token) if exposed else 0)


@contextlib.contextmanager
def _environment(case: _Case, tunnel: Tunnel, authority: Authority) -> Generator[None]:
    proxy = f"http://127.0.0.1:{tunnel.port}"
    # Every certificate that the system knows stays out of it.
    empty = authority.file.with_name("nobody.pem")
    Authority(_folder(empty.parent / "other")).file.rename(empty)
    told = {
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "NO_PROXY": case.without,
        "SSL_CERT_FILE": str(authority.file if case.known else empty),
    }
    former = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    with mock.patch.dict(os.environ, told):
        for name in former:
            if name not in told:
                del os.environ[name]
        assert ssl.get_default_verify_paths().cafile == told["SSL_CERT_FILE"]
        yield


def _folder(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    return path
