"""Reports that somebody keeps here: what is known of each, and the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDraft:
    """What a report is before it has a number."""

    account: str
    link: str
    """128 random bits in base62: who knows it may see a public one. Names the file, too."""
    filename: str
    title: str | None
    private: bool
    user: str | None
    """Whose it is."""
    user_claimed: bool
    """Whether that is only what the sender said: no personal token proved it."""
    key_id: str
    """Of the token that it came with."""
    size_bytes: int
    created_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow(ReportDraft):
    id: int
    """Number in its account."""
    kept_at: float | None = None
    """When its file was looked at and kept; None while it is on its way."""


class Reports(Protocol):
    """Numbers start at 1 in each account, are never given twice, and may have gaps."""

    def add(self, draft: ReportDraft) -> ReportRow: ...

    def get(self, account: str, id: int) -> ReportRow:
        """Raises Missing, also for a number of another account."""
        ...

    def keep(self, account: str, id: int, at: float) -> ReportRow:
        """Its file is there. Quiet if that was said before (the first time stands). Raises Missing."""
        ...

    def set_private(self, account: str, id: int, private: bool) -> ReportRow:
        """Raises Missing."""
        ...

    def remove(self, account: str, id: int) -> None:
        """Quiet if it is gone."""
        ...

    def page(
        self, account: str, limit: int, before: int | None = None, *, oldest_first: bool = False
    ) -> Sequence[ReportRow]:
        """At most `limit`, the highest number first, of those below `before` (None: all); or the lowest first, of those
        above `before`. What was just added may be missing for a moment."""
        ...

    def accounts(self) -> Sequence[str]:
        """Those that have reports, or had, by name. What was just added may be missing for a moment."""
        ...

    def forget_numbers(self, account: str) -> None:
        """An account without reports starts anew at 1. Quiet, and nothing changed, if it has any."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """How a file gets here past the API. `url` is absolute, or relative to the server's address."""

    method: Literal["POST", "PUT"]
    """POST: a form with `fields`, and last the file as `file`. PUT: the file itself as body."""
    url: str
    fields: Mapping[str, str]
    expires_at: float


class Arrived(NamedTuple):
    """What was brought, as somebody looked at it."""

    size_bytes: int
    head: bytes
    """Its first bytes."""
    version: str
    """Another one whenever something is brought in its place."""


class ReportFiles(Protocol):
    """A report's file under its link: first on its way, then kept where all who know an address may get it, or where
    only short-lived addresses lead."""

    def offer(self, link: str, size_bytes: int, until: float) -> Upload:
        """Lets whoever has the answer bring one file of exactly so many bytes, as text/html, until then (epoch s)."""
        ...

    def arrived(self, link: str, head_bytes: int) -> Arrived:
        """What was brought. Raises Missing."""
        ...

    def keep(self, link: str, private: bool, version: str | None = None) -> None:
        """What was brought is the report's from now on, and whatever is brought after it is not. Quiet if it is kept
        already, as it is. Raises Missing; Conflict if what lies there is no longer of that version (None: of any)."""
        ...

    def discard(self, link: str) -> None:
        """What was brought goes. Quiet if there is nothing."""
        ...

    def move(self, link: str, private: bool) -> None:
        """A kept one becomes private or public; an address that is no longer to lead to it is dead within 60 s. Quiet
        if it is so already. Raises Missing."""
        ...

    def delete(self, link: str) -> None:
        """A kept one goes: its addresses are dead within 60 s. Quiet if it is gone."""
        ...

    def address(self, link: str, private: bool, download: str | None = None) -> str:
        """Where a browser gets it, on an origin that has nothing else: absolute, or as path below the reports' own
        origin. Of a private one, and of a download (saved under that file name), good for at most 5 minutes. Of one
        that is kept as public, a private address is one, too. Raises Missing where it has to look.
        """
        ...

    def tidy(self) -> None:
        """Take away what was brought and never kept for a day, and what led to private ones for too long."""
        ...


class ReportHost(Protocol):
    """On one machine somebody must play what takes files in and shows them: what those do who bring and ask."""

    def admit(self, link: str, told: Mapping[str, str]) -> int:
        """How many bytes may be brought, by the parameters of the URL that was offered. Raises NotAdmitted, and as
        `check_awaited`."""
        ...

    def check_awaited(self, link: str) -> None:
        """Raises Taken if the report is kept already, Missing if nobody waits for it any more."""
        ...

    def draft(self) -> Path:
        """An empty file for what comes. It is the caller's, who gives it to `bring` or takes it away. Raises Full."""
        ...

    def append(self, draft: Path, part: bytes) -> None:
        """The next bytes. Raises Full."""
        ...

    def bring(self, link: str, draft: Path) -> None:
        """What stands in the draft is what was brought, in place of what was before; the draft is gone then."""
        ...

    def find(self, path: str, told: Mapping[str, str]) -> tuple[Path, str | None]:
        """The file that an address leads to, by its path below the origin and its parameters, and the name it is to be
        saved under, if it is. Raises NotAdmitted, Missing."""
        ...
