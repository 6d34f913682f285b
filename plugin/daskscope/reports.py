"""`performance_report()`: Dask's own report of a block of work, kept on the server for those who should see it.

Whatever becomes of the report, the block is not touched: what is wrong with it is said in one sentence on stderr, which
says what to do, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

import distributed
from distributed import Client, get_client
from fsspec.utils import infer_compression

from daskscope import parsing, settings
from daskscope.agent.texts import told
from daskscope.arguments import among, one_of
from daskscope.discovery import shared_folder
from daskscope.errors import DaskscopeError, NotFound, SettingsError
from daskscope.records import printable
from daskscope.registration import registered
from daskscope.session import Session
from daskscope.session.reports import checked_title

Mode = Literal["inline", "cdn"]

_ANSWER = "30 s"
"""A server that takes longer to say a word is not waited for: the block is done."""
_DONE = "Performance Report Available at: "
"""As users of the original know it."""


def performance_report(
    filename: str | os.PathLike[str] = "dask-report.html",
    private: bool = False,
    account: str | None = None,
    *,
    mode: Mode | None = "inline",
    title: str | None = None,
    stacklevel: int = 1,
    workspace: str | None = None,
) -> PerformanceReport:
    """Dask's performance report of a block of work, written to a file here and kept on the server.

        with daskscope.performance_report() as report:      # `async with`, where the client is asynchronous
            df.groupby("name").amount.sum().compute()
        print(report.url)

    Whoever has the address may see it; a `private` one is for members of the account alone. `mode="cdn"` makes a
    smaller file (0.1 MB in place of 1 MB and more), which fetches Bokeh from the internet when it is looked at.
    `stacklevel` says which frame is shown as the calling code: 1 is the block's own.

    Also of a block that raises. If the report cannot be made or uploaded the block goes on all the same, `url` stays
    None, and a sentence on stderr says what to do. Raises SettingsError for an argument that cannot be used, and
    DaskscopeError without a client, both before the block begins.
    """
    return PerformanceReport(filename, private, one_of(account, workspace), mode, title, stacklevel)


class PerformanceReport:
    """What `performance_report` gives: `filename`, and, after the block, `url`."""

    def __init__(
        self,
        filename: str | os.PathLike[str],
        private: bool,
        account: str | None,
        mode: Mode | None,
        title: str | None,
        stacklevel: int,
    ) -> None:
        if not isinstance(private, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - a user may not check types
            raise SettingsError("private", private, "True or False")
        self._path = _local(filename)
        self._private, self._title = private, checked_title(title)
        self._account = parsing.account("account", account)
        self._client: Client | None = None
        self._dask = distributed.performance_report(
            filename=str(self._path),
            stacklevel=max(stacklevel, 1) + 1,  # between the block and Dask's there is one frame of ours
            mode=among("mode", mode, get_args(Mode)),
        )
        self.url: str | None = None
        """The address of the report's page; None until the report is there."""

    @property
    def filename(self) -> str:
        """The file, with its folders."""
        return str(self._path)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url or self.filename}>"

    def __enter__(self) -> Self:
        client = _client(asynchronous=False)
        with self._beginning(client):
            self._dask.__enter__()
        return self

    async def __aenter__(self) -> Self:
        client = _client(asynchronous=True)
        with self._beginning(client):
            await self._dask.__aenter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is None:
            return
        try:
            with self._client.as_current():
                self._dask.__exit__(kind, error, trace)
        except Exception as problem:  # noqa: BLE001 - host first
            _say(_no_report(problem, self._client))
        else:
            self._keep()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is None:
            return
        try:
            with self._client.as_current():
                await self._dask.__aexit__(kind, error, trace)
        except Exception as problem:  # noqa: BLE001 - host first
            _say(_no_report(problem, self._client))
        else:
            await asyncio.to_thread(self._keep)

    @contextmanager
    def _beginning(self, client: Client) -> Generator[None]:
        """A report that cannot begin is not made; and one for which there is no place here gets another."""
        if not _can_be_written(self._path):
            instead = Path(tempfile.mkdtemp(prefix="daskscope-")) / self._path.name
            why = "is a folder" if self._path.is_dir() else "cannot be written"
            _say(f"{self._path} {why}, so the performance report comes to {instead}.")
            self._path = instead
            self._dask.filename = str(instead)
        try:
            with client.as_current():
                yield
            self._client = client
        except Exception as problem:  # noqa: BLE001 - host first
            _say(_no_report(problem, client))

    def _keep(self) -> None:
        """Upload it; or say how that is done later."""
        try:
            with Session(timeout=_ANSWER) as session:
                try:
                    kept = session.upload_performance_report(
                        self._path, self._private, self._account, title=self._title
                    )
                except NotFound as error:
                    self._account, said = _of_theirs(session, self._account, str(error))
                    raise NotFound(said) from error
        except Exception as problem:  # noqa: BLE001 - host first
            self._say_how_later(str(problem) if isinstance(problem, DaskscopeError) else told(problem))
        except KeyboardInterrupt:
            self._say_how_later("It was interrupted.")
            raise
        else:
            self.url = kept["url"]
            hidden = kept.get("private") is True and not self._private
            _say(f"{_DONE}{self.url}{' (private: the account allows no public ones)' if hidden else ''}", sys.stdout)

    def _say_how_later(self, problem: str) -> None:
        options = ["--private"] if self._private else []
        for name, value in (("--title", self._title), ("--account", self._account), ("--server", _server())):
            options += [name, value] if value else []
        command = shlex.join(["daskscope", "report", "upload", *options, str(self._path)])
        _say(f"The performance report is in {self._path} and was not uploaded. {problem} To upload it later: {command}")


def _local(filename: object) -> Path:
    """Where the file comes, whatever folder becomes the current one. Raises SettingsError."""
    name = os.fspath(filename) if isinstance(filename, (str, os.PathLike)) else filename
    if not isinstance(name, str) or not name or "://" in name or "::" in name or infer_compression(name) is not None:
        raise SettingsError(
            "filename", name, "a file on this machine, in no compressed form, like 'dask-report.html': it is uploaded"
        )
    return Path(name).expanduser().absolute()


def _can_be_written(path: Path) -> bool:
    """Dask makes the folders that are missing."""
    nearest = next(each for each in (path, *path.parents) if each.exists())
    return os.access(nearest, os.W_OK) and (nearest.is_file() if nearest == path else nearest.is_dir())


def _client(asynchronous: bool) -> Client:
    """The current one, or that of the task in which this runs. Raises DaskscopeError if there is none, or one of the
    other kind."""
    try:
        client = get_client()
    except ValueError as error:
        raise DaskscopeError("There is no Dask client: create one first, `Client(...)`.") from error
    if client.asynchronous != asynchronous:
        kind, word = ("asynchronous", "async with") if client.asynchronous else ("not asynchronous", "with")
        raise DaskscopeError(f"The Dask client is {kind}: write `{word} daskscope.performance_report(...)`.")
    return client


def _of_theirs(session: Session, account: str | None, said: str) -> tuple[str | None, str]:
    """For who asked of an account that is not theirs: one that is, and what was said with all of them."""
    try:
        me = session.whoami()
    except DaskscopeError:
        return account, said
    names = [str(each["account"]) for each in me.get("accounts") or ()]
    if not names or account in names:
        return account, said
    whose = f"{me['user']} is in" if me.get("user") else "it is of"
    listed = "" if all(name in said for name in names) else f" {whose} {', '.join(names)}."
    return names[0], said + listed


def _server() -> str | None:
    """The configured one, which another process may not know of; None where one is found without."""
    try:
        server = settings.load().server
    except SettingsError:
        return None
    return None if shared_folder(server) is not None else server


def _no_report(problem: Exception, client: Client) -> str:
    reason = told(problem)
    if client.status != "running":
        reason = "the cluster was closed, or its scheduler lost, within the block: close it after the block"
    known = registered(client)
    how = f"`daskscope report make {known.cluster}`" if known else "`daskscope report make`, with its number,"
    return (
        f"Dask could not make its performance report ({reason}); the work goes on. If this cluster reports to "
        f"daskscope, {how} makes one of what is known of it."
    )


def _say(sentence: str, stream: Any = None) -> None:
    with contextlib.suppress(OSError, ValueError):  # one that is closed
        text = printable(sentence)
        print(text if stream else f"daskscope: {text}", file=stream or sys.stderr, flush=True)  # for who waits
