"""The stack in the emulator, made by a user's own commands: functions out of their zips, behind its HTTP API."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

from daskscope_lambdas.env import AwsEnv
from daskscope_lambdas.ports import Scope
from daskscope_lambdas.service.tokens import mint
from daskscope_lambdas.wiring import Adapters, connect
from tests.aws_world import point_at
from tests.emulator import Emulator
from tests.infra.commands import CONTEXT, command, environment, run


@dataclass(frozen=True, slots=True)
class Deployed:
    """`url` is where its API answers, `told` what `deploy --outputs` wrote."""

    emulator: Emulator
    url: str
    told: dict[str, Any] = field(repr=False)

    @property
    def env(self) -> AwsEnv:
        """The stack as its functions know it, by its outputs."""
        out: dict[str, str] = self.told["outputs"]
        return AwsEnv(
            bucket=out["Bucket"],
            table=out["Table"],
            queue_url=out["QueueUrl"],
            keys=out["Keys"],
            reports_bucket=out["ReportsBucket"],
            reports=out["Reports"],
            endpoint_url=self.emulator.url,
        )

    @contextmanager
    def registry(self) -> Generator[Adapters]:
        """Its adapters in this process, with an operator's credentials."""
        with pytest.MonkeyPatch.context() as patch:
            point_at(self.emulator, patch)
            with closing(connect(self.env)) as world:
                yield world

    def mint(self, account: str, *scopes: Scope) -> str:
        with self.registry() as world:
            return mint(world.tokens, world.clock, account, scopes, "made by a test")[0]

    def client(self, service: str) -> Any:
        """A boto3 client for what the stack is made of."""
        return client(self.emulator, service)

    def log(self, since: float) -> str:
        """What its functions have logged since those epoch seconds."""
        logs, lines = self.client("logs"), list[str]()
        for group in logs.describe_log_groups()["logGroups"]:
            named = group["logGroupName"]
            events = logs.filter_log_events(logGroupName=named, startTime=int(since * 1000))["events"]
            lines += [f"{named}: {event['message'].rstrip()}" for event in events]
        return "\n".join(lines)


def client(emulator: Emulator, service: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        point_at(emulator, patch)
        session: Any = boto3.Session()
        return session.client(service)


def deploy(emulator: Emulator, home: Path) -> Deployed:
    """`make bootstrap`, then `make deploy`. What they keep goes to `home`."""
    outputs = home / "outputs.json"
    # A message is to be in the lake soon.
    context = (*CONTEXT, "daskscope:write-window-s=1")
    for argv in (command("bootstrap"), command("deploy", "--yes", "--outputs", str(outputs), context=context)):
        done = run(argv, environment(emulator, home))
        assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(outputs.read_text())
    # AWS finds an API by its host name; here no name leads to it, so that it stands in the path.
    api = (urlsplit(told["address"]).hostname or "").partition(".")[0]
    return Deployed(emulator, f"{emulator.url}/_aws/execute-api/{api}/$default", told)
