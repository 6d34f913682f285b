"""What `daskscope doctor` looks at: each finding says how it stands and what to do."""

from __future__ import annotations

import importlib.metadata
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal

import dask.config

from daskscope import __version__, configuration, login, settings
from daskscope.api_version import API
from daskscope.discovery import find_server
from daskscope.errors import PermissionDenied, SettingsError
from daskscope.message_file import BAD, first
from daskscope.records import printable
from daskscope.spool import folder

if TYPE_CHECKING:
    from daskscope.connection import Connection
    from daskscope.session import Session

State = Literal["ok", "warn", "fail"]

SKEW_S = 5.0
"""A clock that is further off is told."""
MANY = 1000
"""Messages in a folder are counted up to here."""
RECENT = "7 days"

_EXTRA = re.compile(r"""([A-Za-z0-9_.-]+).*;.*extra == ['"]([\w-]+)['"]""")


@dataclass(frozen=True, slots=True)
class Finding:
    """`check` is what was looked at."""

    check: str
    state: State
    said: str


def of_settings() -> Iterator[Finding]:
    """What is configured here."""
    try:
        found = settings.load()
        problems = [f"{row['key']}: {row['problem']}" for row in configuration.config() if row["problem"]]
    except SettingsError as error:
        yield Finding("settings", "fail", printable(str(error)))
        return
    if problems:
        yield Finding("settings", "warn", printable("; ".join(problems)))
    elif found.disabled:
        yield Finding("settings", "warn", "daskscope.analytics.disabled is true: clusters report nothing.")
    else:
        yield Finding("settings", "ok", printable(configuration.destination(found)))


def of_login() -> Iterator[Finding]:
    """What `daskscope login` keeps, if anything. Raises SettingsError, OSError."""
    kept = login.kept()
    if kept is None:
        return
    mode = stat.S_IMODE(login.path().stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        said = f"Others may read the tokens in {login.path()}: run `chmod 600` on it, and log in anew."
        yield Finding("login", "warn", said)
        return
    who = f"as {kept.user}" if kept.user else "with the token of a site"
    yield Finding("login", "ok", printable(f"Logged in at {kept.server} {who}, in account {kept.account}."))


def of_dask() -> Iterator[Finding]:
    """Dask's own settings, without which there is less to see."""
    yield Finding("dask", "ok", f"distributed {importlib.metadata.version('distributed')}")
    n_frames = dask.config.get(configuration.NFRAMES, 0)
    if n_frames:
        yield Finding("code", "ok", f"{configuration.NFRAMES} is {n_frames}: computations come with their code.")
    else:
        yield Finding(
            "code", "warn", f"{configuration.NFRAMES} is 0, so no code comes with computations: set it to 2 or more."
        )


def of_server(connection: Connection, clock: Callable[[], float] = time.time) -> Iterator[Finding]:
    """Whether somebody answers, whose the token is, and whether the clocks agree. Raises DaskscopeError."""
    me = connection.whoami()
    release, api = me.get("version", "of an earlier release"), me.get("api", API)
    said = f"{connection.source.name} answers: daskscope {release}, API {api}; here is {__version__}, API {API}."
    yield Finding("server", "ok", printable(said))
    scopes = ", ".join(me["scopes"]) or "nothing"
    can_read = "read" in me["scopes"]
    instead = "" if can_read else ": lists need one of scope read"
    whose = f"{me['user']} in account" if me.get("user") else "account"
    said = f"The token {me['name']!r} of {whose} {me['account']} may {scopes}{instead}."
    yield Finding("token", "ok" if can_read else "warn", printable(said))
    yield from _clock(connection, clock)


def of_reporting(server: str | None, account: str | None) -> Iterator[Finding]:
    """Whether the server takes what `register()` would send it. Raises SettingsError."""
    configured = settings.load().but(server=server, account=account)
    found = find_server(configured)
    if found is None or configured.disabled:
        return
    from daskscope.admission import refusal  # not at the top: `daskscope --help` loads every command

    if said := refusal(found, configured.data):
        yield Finding("report", "fail", printable(f"Clusters that are registered here cannot report. {said}"))
    else:
        yield Finding("report", "ok", "Clusters that are registered here can report.")


def _clock(connection: Connection, clock: Callable[[], float]) -> Iterator[Finding]:
    before = clock()
    told = connection.source.request("GET", "/whoami", {}).headers.get("date")
    after = clock()
    if told is None:
        return  # A lake has no clock.
    at = parsedate_to_datetime(told).timestamp()  # a whole second, rounded down
    off_s = max(0.0, before - at - 1, at - after)
    if off_s > SKEW_S:
        said = f"This clock and the server's are {off_s:,.0f} s apart; have both set by NTP."
        yield Finding("clock", "warn", said)
    else:
        yield Finding("clock", "ok", "This clock and the server's agree.")


def of_clusters(session: Session) -> Iterator[Finding]:
    """What clusters of late had to drop. Raises DaskscopeError."""
    try:
        found = session.list_clusters(since=RECENT)
    except PermissionDenied:
        return  # That the token may not read is told.
    losing = [each for each in found if sum(each["lost"].values())]
    if not losing:
        yield Finding("messages", "ok", f"None of {len(found):,} clusters of the last {RECENT} dropped a message.")
        return
    n, worst = (
        sum(sum(each["lost"].values()) for each in losing),
        max(losing, key=lambda each: sum(each["lost"].values())),
    )
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in worst["lost"].items() if count)
    said = f"{len(losing):,} of {len(found):,} clusters of the last {RECENT} dropped {n:,}, most of all {worst['id']}"
    yield Finding(
        "messages", "warn", printable(f"{said} ({reasons}); `daskscope show {worst['id']}` tells what is missing.")
    )


def of_spool() -> Iterator[Finding]:
    """Messages that lie here and that no server has. Raises SettingsError."""
    place = folder(settings.load().data)
    waiting, aside = len(first(place, MANY)), len(list(place.glob(f"*{BAD}")))
    if not waiting and not aside:
        yield Finding("spool", "ok", f"No message waits in {place}.")
        return
    more = "at least " if waiting == MANY else ""
    said = f"{more}{waiting:,} messages wait in {place}, {aside:,} were set aside:"
    yield Finding("spool", "warn", printable(f"{said} `daskscope import {place}` sends them."))


def of_extras() -> Iterator[Finding]:
    """Which extras are there whole."""
    needs: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("daskscope") or ():
        if found := _EXTRA.match(line):
            needs.setdefault(found[2], []).append(found[1])
    missing = {extra: [name for name in names if not _is_installed(name)] for extra, names in needs.items()}
    there = [extra for extra, names in missing.items() if not names]
    absent = [f"{extra} (without {', '.join(names)})" for extra, names in missing.items() if names]
    said = f"Installed: {', '.join(there) or 'none'}. "
    said += f"Not: {'; '.join(absent)}: pip install 'daskscope[NAME]' brings one." if absent else "All of them."
    yield Finding("extras", "ok", said)


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
