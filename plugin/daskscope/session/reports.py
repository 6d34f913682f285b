"""Performance reports that are kept on the server, and reports of runs that nobody planned to report on."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from dask.utils import format_bytes

from daskscope import transfer
from daskscope.arguments import Cluster, without
from daskscope.collect.identity import system_user
from daskscope.connection import PAGE
from daskscope.errors import BadRequest, ServerError, SettingsError
from daskscope.progress import Progress
from daskscope.records import Record, Records
from daskscope.session.base import Base, part

_REPORTS = ("id", "filename", "title", "user", "private", "size", "created", "expires", "status", "url")
MOST_TITLE = 200
"""Characters, as the server takes them."""
_MOST_BYTES = 200
"""Of a file's name."""
_NOT_OF_A_NAME = re.compile(r"[^\w.@+ -]+")


class Reports(Base):
    """Of a session: reports."""

    def list_performance_reports(
        self, account: str | None = None, *, limit: int | None = None, workspace: str | None = None
    ) -> Records:
        """Reports that are kept for the account, latest first: `filename`, `private`, `url` (its page: of a public one
        for whoever has the address), `user` (whether only the sender said so: `user_claimed`), `size` in bytes, and
        when it `expires`; `status` is `uploading` until its file is there."""
        self._server()
        asked = self._asked(account, workspace, limit)
        found = self._list(asked, "reports", {}, limit, _REPORTS, page="reports", size=PAGE)
        for record in found:
            record["url"] = self._page(record)
        return found

    def get_performance_report(
        self, report_id: int, account: str | None = None, *, workspace: str | None = None
    ) -> Record:
        """One of them, with a `download_url` that is good for some minutes. Raises NotFound."""
        self._server()
        asked = self._asked(account, workspace)
        return self._located(self._connection.get(f"/{asked}/reports/{part(report_id)}", {}, {"url": str}))

    def upload_performance_report(
        self,
        filename: str | os.PathLike[str] = "dask-report.html",
        private: bool = False,
        account: str | None = None,
        *,
        title: str | None = None,
        workspace: str | None = None,
    ) -> Record:
        """Keep an HTML file of at most 500 MB on the server; needs a token that may `report`.

        Whoever has the `url` may see it, or, if it is `private`, members of the account alone; where the account allows
        no public ones it becomes private. Raises OSError for a file that cannot be read.
        """
        title = checked_title(title)
        asked, server, path = self._asked(account, workspace), self._server(), Path(filename)
        with (
            Progress(None, "uploaded", format_bytes) as progress,
            transfer.Outgoing(path, progress) as file,
        ):
            if not file.n_bytes:
                raise SettingsError("filename", str(path), "an HTML report, and this file is empty")
            user = system_user()
            announced = {
                "filename": path.name,
                "size_bytes": file.n_bytes,
                "private": private,
                "title": title,
                "user": None if user == "unknown" else user,
            }
            found = self._connection.post(f"/{asked}/reports", announced, {"id": int, "upload": dict})
            transfer.send(file, found["upload"], server)
        place = f"/{asked}/reports/{found['id']}/uploaded"
        return self._located(self._connection.post(place, {}, {"id": int, "url": str}))

    def download_performance_report(
        self,
        report_id: int,
        filename: str | os.PathLike[str] | None = None,
        account: str | None = None,
        *,
        workspace: str | None = None,
    ) -> Path:
        """Write a kept report to a file, whose path is returned: `filename`, which is overwritten, or else the name it
        has on the server, in the current folder, where nothing is overwritten. Of a private report it is for you alone
        to read.

        Its scripts run in whatever browser opens it: open what you trust. Raises NotFound, FileExistsError, OSError.
        """
        server = self._server()
        found = self.get_performance_report(report_id, account, workspace=workspace)
        url, n_bytes = found.get("download_url"), found.get("size")
        if not isinstance(url, str) or not isinstance(n_bytes, int):
            raise ServerError(f"Report {report_id} cannot be downloaded: its file is not there, or not yet.")
        path = Path(_safe(str(found.get("filename")))) if filename is None else Path(filename)
        if filename is None and path.exists():
            raise FileExistsError(f"{path} is there already: say under which name the report is to be saved.")
        transfer.fetch(url, path, n_bytes, server, for_all=found.get("private") is False)
        return path

    def change_performance_report(
        self, report_id: int, private: bool, account: str | None = None, *, workspace: str | None = None
    ) -> Record:
        """Make a report private to members of the account, or public to whoever has its address; it is its owner's, or
        an admin's, to say."""
        asked = self._asked(account, workspace)
        body = {"private": private}
        return self._located(self._connection.put(f"/{asked}/reports/{part(report_id)}", body, {"url": str}))

    def delete_performance_report(
        self, report_id: int, account: str | None = None, *, workspace: str | None = None
    ) -> Record:
        """Delete a report, as its owner or an admin: within a minute its address leads nowhere. Returns what it was."""
        asked = self._asked(account, workspace)
        return Record(self._connection.delete(f"/{asked}/reports/{part(report_id)}"))

    def report(
        self,
        cluster_id: Cluster | None = None,
        computation_id: str | None = None,
        filename: str | os.PathLike[str] | None = None,
        *,
        tasks: bool = False,
        account: str | None = None,
        workspace: str | None = None,
    ) -> Path:
        """Write what is known of a cluster, or of one computation, as one HTML file that needs no network; returns its
        path. Nobody has to have planned it.

        `filename` is `cluster-12.html` or the like unless told, and is overwritten; `tasks=True` adds single tasks, if
        they were sent (`daskscope.analytics.tasks.transmit`).
        """
        if cluster_id is not None:
            without("beside a cluster: give one of the two", computation_id=computation_id)
        elif computation_id is None:
            raise SettingsError("cluster_id", None, "a cluster's number, scheduler id or UUID; or give computation_id")
        asked = self._asked(account, workspace)
        kind, name = ("cluster", cluster_id) if cluster_id is not None else ("computation", computation_id)
        assert name is not None
        query = {"tasks": "true"} if tasks else {}
        found = self._connection.html(f"/{asked}/{kind}s/{part(name)}/report", query)
        path = Path(filename) if filename is not None else Path(_safe(f"{kind}-{name}.html"))
        path.write_bytes(found)
        return path

    def _server(self) -> str:
        """The address that is asked. Raises BadRequest for a lake in its place."""
        if self._connection.source.pages is None:
            raise BadRequest(
                f"{self._connection.name} is a lake without its server, and performance reports are the server's: name "
                "the server's address in its place."
            )
        return self._connection.source.name

    def _page(self, record: dict[str, Any]) -> str:
        return f"{self._connection.source.pages}/{record.get('url')}"

    def _located(self, record: dict[str, Any]) -> Record:
        """With the whole address of its page."""
        url = self._page(record)
        return Record({**record, "url": url}, url=url)


def checked_title(title: object) -> str | None:
    """The title itself. Raises SettingsError for one that no server would take."""
    if title is None or (isinstance(title, str) and 0 < len(title) <= MOST_TITLE and title.isprintable()):
        return title
    shown = f"{title[:20]}... ({len(title):,} characters)" if isinstance(title, str) and len(title) > 20 else title
    raise SettingsError("title", shown, f"1 to {MOST_TITLE} printable characters, or None")


def _safe(name: str) -> str:
    """A file's name, whatever somebody has called it: without folders, seen in a listing, and not too long."""
    kept = _NOT_OF_A_NAME.sub("_", name.replace("\\", "/").rpartition("/")[2]).lstrip(". ")
    return kept.encode()[:_MOST_BYTES].decode(errors="ignore") or "dask-report.html"
