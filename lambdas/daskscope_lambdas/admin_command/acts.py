"""How an operator's act is written down, before it is done."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daskscope_lambdas.service.audit import Audit, Operator
    from daskscope_lambdas.wiring import Adapters


def audit(world: Adapters) -> Audit:
    from daskscope_lambdas.service.audit import Audit

    return Audit(world.objects, world.seals, world.clock)


def operator(account: str) -> Operator:
    """Whoever runs this, as the machine knows them."""
    from daskscope_lambdas.service.audit import Operator

    return Operator(account, getpass.getuser())
