"""Reports that somebody keeps here: how one comes, and who may see, hide and delete it.

A file is never less private than its row says: it is hidden before the row is, and shown after. And no file is left
that no row knows: whoever deletes one and dies on the way leaves a row that leads nowhere, and may delete it again.
"""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from daskscope.errors import Conflict, NotFound, PermissionDenied
from daskscope_lambdas.ports import Conflict as Changed
from daskscope_lambdas.ports import Missing, ReportDraft, ReportFiles, ReportRow, Reports, Upload
from daskscope_lambdas.service.base62 import Random, code
from daskscope_lambdas.service.report_checks import HEAD_BYTES, BadReportError, check_announced, check_file
from daskscope_lambdas.service.report_policy import ReportPolicy
from daskscope_lambdas.service.tokens import Principal, require
from daskscope_lambdas.service.world import World

logger = logging.getLogger("daskscope.reports")

Note = Callable[[ReportRow], object]

UPLOAD_S = 900.0
"""An upload has to begin within so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """What somebody says of a report before its file comes."""

    filename: str
    size_bytes: int
    private: bool = False
    title: str | None = None
    user: str | None = None
    """Whose it is, where no personal token proves that."""


class ReportKeeper:
    """Safe to use from many threads."""

    def __init__(self, world: World, random: Random = secrets.token_bytes) -> None:
        self._reports, self._files = world.reports, world.report_files
        self._policies, self._clock, self._random = world.policies, world.clock, random

    def policy(self, account: str) -> ReportPolicy:
        return ReportPolicy.of(self._policies, account)

    def offer(self, principal: Principal, announced: Announced) -> tuple[ReportRow, Upload]:
        """A row for a report that is to come, and how to bring its file. Where the account wants no public ones it is
        private, whatever was asked for.

        Raises PermissionDenied, BadMessage, TooLarge.
        """
        require(principal, "report")
        check_announced(announced.filename, announced.size_bytes, announced.title, announced.user)
        now = self._clock.now()
        row = self._reports.add(
            ReportDraft(
                account=principal.account,
                link=code(self._random),
                filename=announced.filename,
                title=announced.title,
                private=announced.private or not self.policy(principal.account).public,
                user=principal.user or announced.user,
                user_claimed=principal.user is None and announced.user is not None,
                key_id=principal.key_id,
                size_bytes=announced.size_bytes,
                created_at=now,
            )
        )
        return row, self._files.offer(row.link, row.size_bytes, now + UPLOAD_S)

    def uploaded(self, principal: Principal, id: int) -> ReportRow:
        """Look at what was brought and keep it; one that is kept already stays as it is.

        Raises PermissionDenied, NotFound, Conflict where another came meanwhile, and BadReportError: then neither file
        nor row is left.
        """
        require(principal, "report")
        row = self.find(principal.account, id)
        if not _is_own(principal, row):
            raise PermissionDenied(f"Report {id} is another's: whoever announced it says when it is there.")
        if row.kept_at is not None:
            return row
        try:
            arrived = self._files.arrived(row.link, HEAD_BYTES)
        except Missing as error:
            raise NotFound(
                f"No file has come for report {id}. Upload it within {UPLOAD_S / 60:.0f} minutes of announcing it, or "
                "announce it again."
            ) from error
        try:
            check_file(arrived.size_bytes, arrived.head, row.size_bytes)
        except BadReportError:
            self._files.discard(row.link)
            self._reports.remove(row.account, row.id)
            raise
        return self._keep(row, arrived.version)

    def _keep(self, row: ReportRow, version: str) -> ReportRow:
        private = self.policy(row.account).is_private(row)
        if private and not row.private:
            self._reports.set_private(row.account, row.id, True)
        try:
            self._files.keep(row.link, private, version)
            kept = self._reports.keep(row.account, row.id, self._clock.now())
        except Changed as error:
            raise Conflict(
                f"Another file was brought for report {row.id} while the one before it was looked at: bring one, and "
                "say then that it is there."
            ) from error
        except Missing:
            self._files.delete(row.link)  # Somebody deleted the report in this very moment.
            _no_report(row.account, row.id)
        if kept.private and not private:  # or hid it
            self._files.move(row.link, True)
        return kept

    def find(self, account: str, id: int) -> ReportRow:
        """For members of the account. Raises NotFound."""
        try:
            return self._reports.get(account, id)
        except Missing:
            _no_report(account, id)

    def find_public(self, account: str, id: int, link: str) -> ReportRow:
        """For whoever has the link. Raises NotFound, with the same words whatever the reason."""
        with suppress(Missing):
            row = self._reports.get(account, id)
            same = hmac.compare_digest(row.link.encode(), link.encode())
            if same and row.kept_at is not None and not self.policy(account).is_private(row):
                return row
        raise NotFound(
            "No public report has this address: it was deleted, or is for members of its account alone, or never was. "
            "A member sees it after signing in."
        )

    def page(self, account: str, limit: int, before: int | None = None) -> Sequence[ReportRow]:
        """At most `limit`, the latest first, of those before number `before`."""
        return self._reports.page(account, limit, before)

    def may_change(self, principal: Principal, row: ReportRow) -> bool:
        """Whose it is may, and so may who looks after the account."""
        return "admin" in principal.scopes or ("report" in principal.scopes and _is_own(principal, row))

    def set_private(self, principal: Principal, id: int, private: bool, note: Note) -> ReportRow:
        """`note` is told of the report before anything is done. Raises PermissionDenied, NotFound."""
        row = self._to_change(principal, id)
        if not private and not self.policy(row.account).public:
            raise PermissionDenied(
                f"Account {row.account} wants no public reports, so report {id} stays private: an admin of the account "
                "can allow them."
            )
        note(row)
        return hide(self._reports, self._files, row) if private else self._show(row)

    def _show(self, row: ReportRow) -> ReportRow:
        shown = self._reports.set_private(row.account, row.id, False)
        if row.kept_at is not None:
            self._files.move(row.link, False)
        if not self.policy(row.account).public:  # Said in this very moment, and the sweep may have passed it.
            return hide(self._reports, self._files, row)
        return shown

    def delete(self, principal: Principal, id: int, note: Note) -> ReportRow:
        """What it was. As `set_private`."""
        row = self._to_change(principal, id)
        note(row)
        drop(self._reports, self._files, row)
        logger.info("Report %d of %s was deleted by %s.", id, row.account, principal.who)
        return row

    def _to_change(self, principal: Principal, id: int) -> ReportRow:
        row = self.find(principal.account, id)
        if not self.may_change(principal, row):
            raise PermissionDenied(
                f"Report {id} can be changed by whose it is, with a token that may report, and by admins of account "
                f"{row.account}."
            )
        return row


def hide(reports: Reports, files: ReportFiles, row: ReportRow) -> ReportRow:
    """For members alone from now on."""
    if row.kept_at is not None:
        files.move(row.link, True)
    return reports.set_private(row.account, row.id, True)


def drop(reports: Reports, files: ReportFiles, row: ReportRow) -> None:
    """Its addresses lead nowhere within 60 s. Quiet if it is gone."""
    files.discard(row.link)
    files.delete(row.link)
    reports.remove(row.account, row.id)


def _is_own(principal: Principal, row: ReportRow) -> bool:
    """A person's are theirs with any of their tokens; what a site's token brought is that token's."""
    if row.key_id == principal.key_id:
        return True
    return principal.user is not None and not row.user_claimed and row.user == principal.user


def _no_report(account: str, id: int) -> NoReturn:
    raise NotFound(f"Account {account} has no report {id}.")
