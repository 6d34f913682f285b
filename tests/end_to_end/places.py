"""Where clusters report to, in either world, as a user has it: an address, an account and tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx

from daskscope import wire
from daskscope.compression import compress
from daskscope_lambdas.ports import Scope, TokenRow
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import Adapters
from tests.end_to_end.house import House, Process

if TYPE_CHECKING:
    from tests.deployed import Deployed


@dataclass(frozen=True, kw_only=True)
class Place:
    """What tests of both worlds know. `registry` opens it as its operator may, beside the server."""

    url: str
    account: str
    token: str
    """May read: the user's."""
    ingest_token: str
    """May ingest and nothing else: the one for schedulers."""
    registry: Callable[[], AbstractContextManager[Adapters]] = field(repr=False)

    @property
    def user(self) -> dict[str, str]:
        """Dask's configuration where the user is."""
        return {
            "daskscope.server": self.url,
            "daskscope.token": self.token,
            "daskscope.ingest-token": self.ingest_token,
        }

    @property
    def scheduler(self) -> dict[str, str]:
        """Dask's configuration where a scheduler runs that was never registered."""
        return {"daskscope.server": self.url, "daskscope.ingest-token": self.ingest_token}

    def mint(self, *scopes: Scope, account: str | None = None) -> tuple[str, TokenRow]:
        """Another token, of this account unless told otherwise."""
        with self.registry() as world:
            return mint(world.tokens, world.clock, account or self.account, scopes, "end to end")

    def revoke(self, key_id: str) -> None:
        with self.registry() as world:
            world.tokens.revoke(key_id, world.clock.now())

    def post(self, message: wire.Message, token: str | None = None) -> httpx.Response:
        """As the plugin posts."""
        body, encoding = compress(wire.encode(message))
        return self.post_body(body, token or self.ingest_token, {"Content-Encoding": encoding})

    def post_body(self, body: bytes, token: str, headers: Mapping[str, str] = {}) -> httpx.Response:
        posted = {**_bearer(token), "Content-Type": wire.CONTENT_TYPE, **headers}
        return httpx.post(self.url + wire.PATH, content=body, headers=posted, timeout=60, trust_env=False)

    def get(self, path: str, token: str | None = None) -> httpx.Response:
        """With the user's token unless another is given; empty for none."""
        headers = _bearer(self.token if token is None else token)
        return httpx.get(self.url + path, headers=headers, timeout=60, trust_env=False)

    def page(self, path: str) -> httpx.Response:
        """As a browser gets it that has signed in with the user's token."""
        signed_in = httpx.post(self.url + "/login", data={"token": self.token}, timeout=60, trust_env=False)
        headers = {"Cookie": signed_in.headers["set-cookie"].partition(";")[0]}
        return httpx.get(self.url + path, headers=headers, timeout=60, trust_env=False)


@dataclass(frozen=True, kw_only=True)
class Embedded(Place):
    """`daskscope serve`, whose process tests of it may stop. Its tokens are found by the plugin itself."""

    house: House
    server: Process

    @property
    def user(self) -> dict[str, str]:
        return {"daskscope.server": self.url}

    @property
    def scheduler(self) -> dict[str, str]:
        return {"daskscope.server": self.url}

    @property
    def elsewhere(self) -> Place:
        """The same for users whose data folder is not this server's: they are given its tokens."""
        return Place(
            url=self.url,
            account=self.account,
            token=self.token,
            ingest_token=self.ingest_token,
            registry=self.registry,
        )

    def serve_again(self) -> None:
        """Another server with the same data at the same address, after the first has ended."""
        self.house.serve(int(self.url.rpartition(":")[2]))


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


@contextmanager
def in_stack(deployed: Deployed, account: str) -> Generator[Place]:
    """An account, with tokens of its own, in the deployed stack that all tests share.

    Prints what the functions have logged meanwhile, which pytest shows if the test fails; none may have met a fault.
    """
    began = time.time()
    token, ingest_token = deployed.mint(account, "read"), deployed.mint(account, "ingest")
    yield Place(url=deployed.url, account=account, token=token, ingest_token=ingest_token, registry=deployed.registry)
    logged = deployed.log(began)
    print(logged)
    assert '"level":"ERROR"' not in logged


def environment(configured: Mapping[str, str]) -> dict[str, str]:
    """The variables that tell another process the same as this part of Dask's configuration."""
    return {f"DASK_{name.replace('.', '__').replace('-', '_').upper()}": value for name, value in configured.items()}
