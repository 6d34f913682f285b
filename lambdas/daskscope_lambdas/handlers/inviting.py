"""The invitations of this process' world."""

from __future__ import annotations

from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.invitations import Invitations


def invitations() -> Invitations:
    world = house.adapters()
    return Invitations(world.tickets, world.users, world.tokens, world.clock, house.gate())
