"""`register()`: from the user's process to the scheduler, and back with where the cluster can be seen."""

from __future__ import annotations

import asyncio
import contextlib
import html
import logging
import shlex
import socket
from collections.abc import Awaitable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from distributed import Client, Scheduler
from distributed.comm.addressing import get_address_host

from daskscope import settings as options
from daskscope.agent.texts import told
from daskscope.attempts import warn
from daskscope.collect.identity import cluster_uuid
from daskscope.collect.kind import kind_of
from daskscope.discovery import Server, find_server, is_loopback, shared_folder
from daskscope.errors import DaskscopeError, NotOnScheduler
from daskscope.records import printable
from daskscope.scheduler_plugin import Starter, start_watch
from daskscope.settings import Settings
from daskscope.watch import EXTENSION

if TYPE_CHECKING:
    from distributed.core import Server as DaskServer

logger = logging.getLogger("distributed.daskscope")

RECIPE = (
    "Install it in the scheduler's environment or image; for a try, let Dask do it and register again: "
    "`from dask.distributed import PipInstall; client.register_plugin(PipInstall(['daskscope']))`."
)


@dataclass(frozen=True, slots=True)
class Registration:
    """A cluster that reports. Shows as one sentence, with a link in a notebook."""

    cluster: str
    """The cluster's UUID, 32 hex digits; `Scheduler-<uuid>` is the scheduler's id."""
    server: str | None
    """The server it reports to, or `file://` and the folder in its place; None if none was found, or it reports
    nothing."""
    spool: str | None = None
    """Folder on the scheduler's machine that keeps the messages where there is no server."""
    address: str | None = None
    """Where people reach the server, if not at `server`."""
    refusal: str | None = None
    """Why the server takes no messages of the cluster, if it said so."""

    @property
    def url(self) -> str | None:
        """The page of the cluster; it is there from the first message on. None where no server is."""
        if not self.server or shared_folder(self.server) is not None:
            return None
        return f"{self.address or self.server}/c/{self.cluster}"

    def __str__(self) -> str:
        if self.refusal:
            return (
                f"daskscope: {self.server} does not take this cluster's messages. {self.refusal} Meanwhile they are "
                f"kept, as far as there is room, and tried again; {self.url} shows nothing."
            )
        if self.url:
            return f"daskscope: this cluster can be seen at {self.url}"
        if shared := shared_folder(self.server):
            name = shlex.quote(str(shared))
            return (
                f"daskscope: this cluster's story is kept in {shared}. To see it, now or later, run "
                f"`daskscope serve --data {name}`, or `daskscope import {name}` where a server is."
            )
        if self.spool:
            return (
                f"daskscope: no server found, so this cluster's story is kept in {self.spool} on the scheduler's "
                "machine. Run `daskscope serve` there, now or later, to see it."
            )
        return "daskscope: reporting is disabled (daskscope.analytics.disabled)."

    __repr__ = __str__

    def _repr_html_(self) -> str:
        link = html.escape("" if self.refusal else self.url or "")
        return f'daskscope: <a href="{link}">{link}</a>' if link else html.escape(str(self))


_registrations: WeakKeyDictionary[Client, Registration] = WeakKeyDictionary()


def register(
    client: Client | None = None,
    *,
    account: str | None = None,
    server: str | None = None,
    token: str | None = None,
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
) -> Registration | Awaitable[Registration]:
    """Let the cluster of `client` (the current one if None) report from now on.

    Settings are read here, in the user's process; arguments win over them. A second call returns the same registration.
    With an asynchronous client the result is to be awaited.

    Raises SettingsError for a setting that cannot be used, NotOnScheduler if daskscope is not installed where the
    scheduler runs, DaskscopeError if there is no client. A server that cannot be reached raises nothing: messages are
    kept and tried again. So they are where it would not take them, and the registration says why (`refusal`).
    """
    client = current_client(client)
    settings = options.load().but(account=account, server=server, token=token, name=name, tags=tags)
    return client.sync(_register, client, settings)


def current_client(client: Client | None) -> Client:
    """The client itself, or the current one. Raises DaskscopeError if there is none."""
    try:
        return Client.current() if client is None else client
    except ValueError as error:
        raise DaskscopeError("There is no Dask client: create one first, `Client(...)`.") from error


def registered(client: Client) -> Registration | None:
    """What `register` returned for it; None if it was not called in this process."""
    return _registrations.get(client)


async def _register(client: Client, settings: Settings) -> Registration:
    known = _registrations.get(client)
    scheduler: Any = client.scheduler
    scheduler_id: str = (await scheduler.identity())["id"]
    if known is not None and known.cluster == cluster_uuid(scheduler_id):
        return known
    if settings.disabled:
        registration = Registration(cluster_uuid(scheduler_id), None)
    else:
        registration = await _registered(client, settings)
        _registrations[client] = registration
    with contextlib.suppress(OSError, ValueError):  # a standard output that is closed
        print(printable(str(registration)))  # noqa: T201  # what the user called this for
    return registration


async def _registered(client: Client, settings: Settings) -> Registration:
    found = find_server(settings)
    if found is None:
        return await _send(client, _resolved(settings, None, client))
    from daskscope.admission import refusal_soon  # not at the top: schedulers import this, and need no HTTP client

    asked = asyncio.create_task(refusal_soon(found, settings.data))
    try:
        sent = await _send(client, _resolved(settings, found, client))
        if sent.server != found.url:  # It reported elsewhere before.
            return sent
        return replace(sent, address=found.address, refusal=await asked)
    finally:
        asked.cancel()


async def _send(client: Client, settings: Settings) -> Registration:
    with needs_daskscope(client):
        await _register_plugin(client, Starter(settings))
    found: dict[str, Any] | None = await getattr(client.scheduler, EXTENSION)()
    if found is None:  # Dask's answer to a call that the scheduler does not know
        raise DaskscopeError("daskscope could not start on the scheduler: its log says why.")
    return Registration(found["cluster"], found["server"], found["spool"])


@contextlib.contextmanager
def needs_daskscope(client: Client) -> Generator[None]:
    """Raises NotOnScheduler where what is asked of the scheduler finds no daskscope there."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "daskscope":
            raise
        how = "not installed" if error.name == "daskscope" else "an older release"
        raise NotOnScheduler(f"daskscope is {how} on the scheduler at {_address(client)}. {RECIPE}") from error


async def _register_plugin(client: Client, plugin: Starter) -> None:
    old: Any = client
    if hasattr(client, "register_plugin"):  # since 2023.9.2
        await client.register_plugin(plugin)  # type: ignore[misc]  # awaitable when called on the client's own loop
    else:
        await old.register_scheduler_plugin(plugin)


def resolved(settings: Settings, client: Client) -> Settings:
    """Settings as the scheduler needs them: a server and the token for schedulers, or neither."""
    return _resolved(settings, find_server(settings), client)


def _resolved(settings: Settings, found: Server | None, client: Client) -> Settings:
    if found is None:
        return _named(without_tokens(settings), client)
    if is_loopback(found.url) and not _is_here(_address(client)):
        logger.warning(
            "daskscope: the server %s is on this machine, where the scheduler at %s cannot reach it: start "
            "`daskscope serve --host` on an address that it can, and set daskscope.server.",
            found.url,
            _address(client),
        )
    return _named(_shipped(settings, found), client)


def _shipped(settings: Settings, found: Server) -> Settings:
    """With the one token that goes along to a scheduler, and no other."""
    bare = without_tokens(settings)
    return replace(bare, server=found.url, token=found.ingest_token, account=found.ingest_account)


def without_tokens(settings: Settings) -> Settings:
    """For a scheduler that has nobody to show one to; nor is it told who logged in where."""
    nothing: dict[str, Any] = dict.fromkeys((*options.TOKENS, "login"))
    return replace(settings, **nothing)


def _named(settings: Settings, client: Client) -> Settings:
    """With what only the client knows of its cluster."""
    return settings.but(name=settings.name or _name(client), kind=kind_of(client.cluster))


def _name(client: Client) -> str | None:
    """A name that somebody gave the cluster; the random ones of LocalCluster say nothing."""
    name: object = getattr(client.cluster, "name", None)
    return name if isinstance(name, str) and name and not _is_random(name) else None


def _is_random(name: str) -> bool:
    return len(name) == 8 and all(letter in "0123456789abcdef" for letter in name)


def _address(client: Client) -> str:
    return str(client.scheduler.address) if client.scheduler else "?"


def _is_here(address: str) -> bool:
    """Whether a scheduler's address is on this machine."""
    if address.startswith("inproc://"):
        return True
    host = get_address_host(address)
    if is_loopback(f"tcp://{host}"):
        return True
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))  # only an address of this machine can be bound
    except OSError:
        return False
    return True


async def dask_setup(server: DaskServer | Client) -> None:
    """What Dask calls: `--preload daskscope` with the scheduler, `distributed.client.preload` with the client.

    Never raises: a preload that fails keeps a scheduler from starting.
    """
    try:
        if isinstance(server, Client):
            await _register(server, options.load())
        elif isinstance(server, Scheduler):
            watch_here(server)
    except Exception as error:  # noqa: BLE001  # host first
        warn("daskscope is off: %s", told(error))


def watch_here(scheduler: Scheduler) -> None:
    """Watch a scheduler in this process, by the settings of this process."""
    settings = options.load()
    found = None if settings.disabled else find_server(settings)
    if found is not None:
        settings = _shipped(settings, found)
    start_watch(scheduler, settings)
    where = Registration(cluster_uuid(scheduler.id), None if settings.disabled else settings.server)
    if not settings.disabled and settings.server is None:
        where = Registration(where.cluster, None, settings.data)
    logger.info("%s", where)
