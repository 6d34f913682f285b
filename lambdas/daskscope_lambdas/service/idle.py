"""After how long idleness an account wants a cluster closed. The cluster is told with each reply, and closes itself."""

from __future__ import annotations

import logging
from typing import Any

from daskscope_lambdas.ports import Clock, Policies, StoreError
from daskscope_lambdas.service.kept import Kept

logger = logging.getLogger("daskscope.idle")


class IdlePolicy:
    """One per process: it remembers for a minute what accounts want. Safe to use from many threads."""

    def __init__(self, policies: Policies, clock: Clock) -> None:
        self._wishes = Kept[str, dict[str, Any]](lambda account: policies.wish(account, "idle"), clock)

    def timeout_s(self, account: str, cluster_id: int, user: str | None) -> float | None:
        """What is said of the cluster counts before what is said of its user, and that before what is said of all. None
        for never.

        Never raises: where nobody can be asked, what was known last counts.
        """
        wish = self._wish(account)
        for named, name in (("clusters", str(cluster_id)), ("users", user)):
            said: dict[str | None, float | None] = wish.get(named) or {}
            if name in said:
                return said[name]
        return wish.get("timeout_s")

    def _wish(self, account: str) -> dict[str, Any]:
        try:
            return self._wishes.get(account) or {}
        except StoreError:
            logger.warning("What account %s wants of idle clusters could not be read.", account, exc_info=True)
            return self._wishes.last(account) or {}
