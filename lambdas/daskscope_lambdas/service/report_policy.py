"""What an account wants of the reports that are kept for it: whether any may be public, and for how long they stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from daskscope_lambdas.ports import Policies, ReportDraft

_DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class ReportPolicy:
    """`public`: whether one that is not private is for whoever has its link. `keep_days`: None until it is deleted.
    `set_at`: when that was said (epoch s), so that a wish that comes back is known for another one."""

    public: bool = True
    keep_days: int | None = None
    set_at: float | None = None

    @classmethod
    def of(cls, policies: Policies, account: str) -> ReportPolicy:
        """As the account said last."""
        wish: Mapping[str, Any] = policies.wish(account, "reports")
        return cls(wish.get("public", "allow") == "allow", wish.get("keep_days"), wish.get("set_at"))

    def is_private(self, report: ReportDraft) -> bool:
        """Whether members alone may see it: because it is, or because nothing of the account may be public."""
        return report.private or not self.public

    def outdated(self, now: float) -> float | None:
        """Reports from then (epoch s) or before are kept no longer; None if all are."""
        return None if self.keep_days is None else now - self.keep_days * _DAY_S

    def expires_at(self, report: ReportDraft) -> float | None:
        """Epoch seconds; None if it stays until somebody deletes it."""
        return None if self.keep_days is None else report.created_at + self.keep_days * _DAY_S
