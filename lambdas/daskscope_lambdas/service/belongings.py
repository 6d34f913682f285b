"""What an account has beside its clusters, and how it goes when the account is deleted. Each step may be repeated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from daskscope_lambdas.ports import ReportRow, Subject
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.exclusions import PASS_S
from daskscope_lambdas.service.price_store import PriceKeeper
from daskscope_lambdas.service.reports import drop
from daskscope_lambdas.service.world import World

_TOGETHER = 500


def forget_belongings(world: World, account: str, asked_at: float) -> None:
    """All that was made until PASS_S after (epoch seconds): for so long tokens that are gone may make more. Who comes
    after may have the name, and what they make is theirs."""
    until = asked_at + PASS_S
    world.tokens.forget(account, until)
    world.users.forget(account, until)
    if not used_again(world, account, until):
        # All that says not when it was made. A ticket would let somebody into what is another's by then.
        world.tickets.forget(account)
        for subject in get_args(Subject):
            if world.policies.wish(account, subject):
                world.policies.set_wish(account, subject, {})
        CodeKeeper(world.objects, world.vault).forget(account)
        PriceKeeper(world.objects, world.clock).clear(account)
    for row in _reports(world, account):
        if row.created_at <= until:
            drop(world.reports, world.report_files, row)


def going_until(world: World, account: str) -> float:
    """When what is made of the account does not go with what was deleted of it any more, in epoch seconds; 0.0 where
    nothing was."""
    asked = (each.asked_at for each in world.deletions.pending(account) if each.cluster is None)
    return max((at + PASS_S for at in asked), default=0.0)


def used_again(world: World, account: str, since: float) -> bool:
    """Whether somebody has the name who came since.

    What was there before went when it was asked for. Code that came since, and no row names, goes by unused.py.
    """
    tokens = any(token.created_at > since for token in world.tokens.list(account))
    return tokens or any(member.added_at > since for member in world.users.list(account))


def _reports(world: World, account: str) -> Iterator[ReportRow]:
    """What goes on the way moves nothing."""
    number: int | None = None
    while rows := world.reports.page(account, _TOGETHER, number, oldest_first=True):
        yield from rows
        number = rows[-1].id
