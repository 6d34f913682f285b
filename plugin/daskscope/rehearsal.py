"""`preview()`: what leaves a cluster next, made by the scheduler on the way that every message takes.

A scheduler that is watched makes its next message, sends it as ever, and hands the same bytes back. One that is not
gets a watch that is never started: it listens to nothing, calls no worker, and has nowhere to send to. So it needs no
token, and is sent none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from distributed import Client

from daskscope import settings as options
from daskscope.compression import Encoding
from daskscope.errors import DaskscopeError
from daskscope.outcome import Outcome
from daskscope.previews import Preview
from daskscope.registration import current_client, needs_daskscope, resolved, without_tokens
from daskscope.settings import Settings
from daskscope.watch import EXTENSION, Watch

if TYPE_CHECKING:
    from distributed import Scheduler

SHOW_S = 30.0
"""So long the sender may take: a try to reach a server that does not answer may be under way."""


def preview(client: Client | None = None) -> Preview | Awaitable[Preview]:
    """The literal next message of the cluster of `client` (the current one if None).

    A cluster that reports sends it, too: it is numbered once, and nothing in it is told twice. Of one that does not, it
    is what the first message would be with the settings in force here; nothing is sent, and nothing stays behind. With
    an asynchronous client the result is to be awaited.

    Raises SettingsError for a setting that cannot be used, NotOnScheduler if daskscope is not installed where the
    scheduler runs, DaskscopeError if there is no client or the message could not be made.
    """
    client = current_client(client)
    return client.sync(_preview, client, options.load())


async def _preview(client: Client, settings: Settings) -> Preview:
    settings = settings if settings.disabled else resolved(settings, client)
    ask: Any = client.run_on_scheduler
    with needs_daskscope(client):
        told: dict[str, Any] = await ask(make_on_scheduler, without_tokens(settings))
    return Preview(**told)


async def make_on_scheduler(settings: Settings, dask_scheduler: Scheduler) -> dict[str, Any]:
    """The fields of a Preview. Dask calls it there, and hands the scheduler in by that name.

    Raises DaskscopeError if the message could not be made in time.
    """
    known: Watch | None = dask_scheduler.extensions.get(EXTENSION)
    if known is not None:
        return await _shown(known, sent=True)
    if settings.disabled:
        return {"server": None, "spool": None, "sent": False, "json": "", "body": b"", "encoding": None}
    watch = Watch(dask_scheduler, settings, Nowhere())
    try:
        told = await _shown(watch, sent=False)
    finally:
        watch.sender.close()
    slowly = {"logs": settings.logs is not None, "profile": settings.profile, "hardware": settings.hardware}
    if wanted := [name for name, is_wanted in slowly.items() if is_wanted]:
        told["note"] = f"What workers are asked for ({', '.join(wanted)}) comes in later messages."
    return told


async def _shown(watch: Watch, *, sent: bool) -> dict[str, Any]:
    shown = watch.show() if sent else watch.rehearse()
    try:
        plain, parcel = await asyncio.wait_for(asyncio.wrap_future(shown), SHOW_S)
    except TimeoutError as error:
        raise DaskscopeError(
            f"The message was not packed within {SHOW_S:.0f} s: the scheduler's log may say why."
        ) from error
    where = watch.describe()
    return {
        "server": where["server"],
        "spool": where["spool"],
        "sent": sent,
        "json": plain.decode(),
        "body": parcel.body,
        "encoding": parcel.encoding,
    }


class Nowhere:
    """A transport from which nothing goes on."""

    def deliver(self, name: str, body: bytes, encoding: Encoding, *, is_own: bool = True) -> Outcome:
        del name, body, encoding, is_own
        return Outcome("kept", "")

    def close(self) -> None:
        """Nothing is held open."""
