"""Reports that come as they do over HTTP, with the files at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daskscope_lambdas.ports import ReportRow, Role, Scope, Upload
from daskscope_lambdas.service.reports import Announced, ReportKeeper
from daskscope_lambdas.service.tokens import OF_ROLES, Principal
from daskscope_lambdas.wiring import LocalAdapters

HTML = b"<!DOCTYPE html>\n<html><title>Dask Performance Report</title></html>"


def person(user: str, role: Role = "member", account: str = "acme", key_id: str | None = None) -> Principal:
    return Principal(account, OF_ROLES[role], key_id or f"key-of-{user}", f"{user}'s", None, user, role)


def site(*scopes: Scope, key_id: str = "site", account: str = "acme") -> Principal:
    return Principal(account, frozenset(scopes), key_id, "the cluster's token")


ANN, BOB, EVE = person("ann"), person("bob"), person("eve", account="other")
ADMIN, GUEST = person("root", "admin"), person("guest", "viewer")


class Reporting:
    """A keeper over an embedded world, and what a browser and S3 would do."""

    def __init__(self, world: LocalAdapters) -> None:
        self.world, self.keeper = world, ReportKeeper(world)
        self.noted = list[ReportRow]()

    def bring(self, row: ReportRow, body: bytes = HTML) -> None:
        """As the upload does."""
        draft = self.world.report_host.draft()
        draft.write_bytes(body)
        self.world.report_host.bring(row.link, draft)

    def announce(self, by: Principal = ANN, size_bytes: int = len(HTML), **told: Any) -> tuple[ReportRow, Upload]:
        """`told`: as in Announced."""
        known: dict[str, Any] = {"filename": "dask-report.html", "size_bytes": size_bytes}
        return self.keeper.offer(by, Announced(**known | told))

    def kept(self, by: Principal = ANN, body: bytes = HTML, **told: Any) -> ReportRow:
        row, _ = self.announce(by, len(body), **told)
        self.bring(row, body)
        return self.keeper.uploaded(by, row.id)

    def note(self, row: ReportRow) -> None:
        self.noted.append(row)

    def files(self) -> list[str]:
        """All there are of reports, as folder/name, without what they are signed with."""
        root = Path(self.world.lake_root).parent / "reports"
        found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
        return sorted(str(path) for path in found if path.parts[0] != "keys")
