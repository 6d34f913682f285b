import subprocess
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import click
import pytest

from daskscope_infra.commands import first_tokens
from daskscope_lambdas.env import AwsEnv
from daskscope_lambdas.service import tickets
from daskscope_lambdas.service.gate import Gate
from daskscope_lambdas.wiring import connect
from tests.aws_world import make_world, point_at
from tests.emulator import Emulator
from tests.infra import little_stacks

STACK = "of-first-tokens"


@pytest.fixture
def world(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsEnv]:
    """A registry, and a stack that says where it is."""
    point_at(emulator, monkeypatch)
    made = make_world(emulator)
    named = {"Bucket": made.bucket, "Table": made.table, "QueueUrl": made.queue_url, "Keys": made.keys}
    little_stacks.make(emulator, STACK, little_stacks.OUTPUTS | named)
    yield made
    little_stacks.client(emulator, "cloudformation").delete_stack(StackName=STACK)


@pytest.mark.parametrize("breaks_at", [2, 4])
def test_a_run_that_broke_off_between_tokens_is_made_good_by_the_next(
    world: AwsEnv, monkeypatch: pytest.MonkeyPatch, breaks_at: int
) -> None:
    real, calls = subprocess.run, list[Any]()

    def breaking(argv: list[str], **options: Any) -> Any:
        calls.append(argv)
        return subprocess.CompletedProcess(argv, 1, "") if len(calls) == breaks_at else real(argv, **options)

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", breaking)
        with pytest.raises(
            click.ClickException,
            match=r"a (token|link for the first admin) could not be made.* Run `make deploy` again",
        ):
            first_tokens.make(STACK, "main", "ann")

    made = first_tokens.make(STACK, "main", "ann")
    assert made
    with closing(connect(world)) as stores:
        gate = Gate(stores.tokens, stores.users, stores.clock)
        found = [gate.principal(f"Bearer {text}") for text in (made.reporting, made.reading, made.admin)]
        ticket = tickets.take(stores.tickets, stores.clock, "sign-in", made.link.partition("/login?code=")[2])
        assert stores.users.find("main", made.user).role == "admin"
    assert (ticket.told["user"], ticket.told["account"]) == (made.user, "main")
    assert [(who.account, set(who.scopes)) for who in found] == [
        ("main", {"ingest"}), ("main", {"read"}), ("main", {"admin", "control", "ingest", "read", "report"})
    ]  # fmt: skip
    assert first_tokens.make(STACK, "main", "ann") is None, "they are made once"


def test_who_has_had_tokens_is_told_what_to_paste_and_how_to_make_more(capsys: pytest.CaptureFixture[str]) -> None:
    first_tokens.tell("https://of.a.test", "mine", "acme", None)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "export DASK_DASKSCOPE__SERVER=https://of.a.test" in lines
    another = ".venv/bin/daskscope admin token new --stack mine --account acme --name NAME --scope"
    assert [line for line in lines if line.startswith(".venv")] == [
        f"{another} ingest", f"{another} read", ".venv/bin/daskscope admin user link USER --stack mine --account acme"
    ]  # fmt: skip
