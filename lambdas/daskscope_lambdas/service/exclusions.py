"""What was deleted and is to be in no answer and in no day that is sealed: by account, for the lake to leave out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from daskscope_lambdas.ports import Clusters, Deletion, Deletions
from daskscope_lambdas.service.gate import CACHE_S
from daskscope_query.exclusion import Exclusion

PASS_S = 2 * CACHE_S
"""What comes of an account so soon after it was deleted goes too: its tokens may pass for a moment."""


def excluding(deletions: Iterable[Deletion]) -> dict[str, Exclusion]:
    """By account."""
    found: dict[str, list[Deletion]] = defaultdict(list)
    for deletion in deletions:
        found[deletion.account].append(deletion)
    return {account: _together(asked) for account, asked in found.items()}


def _together(asked: Iterable[Deletion]) -> Exclusion:
    asked = list(asked)
    ends = [datetime.fromtimestamp(each.asked_at + PASS_S, UTC) for each in asked if each.cluster is None]
    return Exclusion(
        frozenset(each.cluster for each in asked if each.cluster is not None),
        max(ends, default=None),
        min(each.swept_through or date.min for each in asked),
    )


class Exclusions:
    """What a day that is about to be sealed leaves out."""

    def __init__(self, deletions: Deletions, clusters: Clusters) -> None:
        self._deletions, self._clusters = deletions, clusters

    def among(self, owners: Iterable[tuple[str, str]]) -> dict[str, Exclusion]:
        """Of these accounts and clusters: those whose deletion is not done, and those that were ever deleted, for a
        message may come that long after."""
        known = list(owners)
        pairs = [(account, cluster) for account, cluster in known if cluster]
        pending = excluding(self._deletions.pending())
        accounts = {account for account, _ in known}  # What was done to an account is no cluster's.
        deleted = self._clusters.deleted({cluster for _, cluster in pairs})
        found: dict[str, Exclusion] = {}
        for account in sorted(accounts):
            asked = pending.get(account, Exclusion())
            mine = {cluster for owner, cluster in pairs if owner == account}
            clusters = frozenset((asked.clusters | deleted) & mine)
            if clusters or asked.until:
                found[account] = Exclusion(clusters, asked.until)
        return found


def as_json(without: Mapping[str, Exclusion]) -> dict[str, dict[str, Any]]:
    """For a plan."""
    return {
        account: {"clusters": sorted(each.clusters), "until": each.until.isoformat() if each.until else None}
        for account, each in without.items()
    }


def from_json(told: Mapping[str, Mapping[str, Any]]) -> dict[str, Exclusion]:
    """What `as_json` was given."""
    return {
        account: Exclusion(
            frozenset(each["clusters"]), datetime.fromisoformat(each["until"]) if each["until"] else None
        )
        for account, each in told.items()
    }
