"""A sender whose messages all get through to ingest: what it was told is kept is what must be found."""

from __future__ import annotations

from daskscope_lambdas.env import FunctionEnv as Told
from daskscope_lambdas.handlers import ingest
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import Adapters
from tests.faults.functions import functions, posted
from tests.faults.telemetry import ACCOUNT, Id, body, ids

PER_CLUSTER = 5


class Poster:
    """`kept`: what was acknowledged, in its order."""

    def __init__(self, world: Adapters, env: Told) -> None:
        self._world, self._env = world, env
        self._token, _ = mint(world.tokens, world.clock, ACCOUNT, ["ingest"], "poster")
        self.kept: list[Id] = []

    def send(self, n: int) -> None:
        """Messages of clusters that are new."""
        with functions(self._world, self._env):
            for one in ids(n, -(-n // PER_CLUSTER), first=len(self.kept)):
                answer = ingest.handler(posted(*body(one), self._token), None)
                assert answer["statusCode"] == 200, answer
                self.kept.append(one)
