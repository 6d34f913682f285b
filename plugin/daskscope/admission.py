"""Whether a server takes what a cluster of this user would send it: asked once, with the token that goes along."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from daskscope.discovery import Server
from daskscope.errors import DaskscopeError, NotFound, NotLoggedIn, PermissionDenied
from daskscope.remote import Remote
from daskscope.replies import check_is_ours, told
from daskscope.whence import where_tokens_are

ANSWER_S = 2.0
"""A server that takes longer gets the benefit of the doubt: nobody waits for it."""


def refusal(server: Server, data: str, timeout_s: float = ANSWER_S) -> str | None:
    """Why it would not take messages, in sentences; None if it does, or if that cannot be told from here.

    `data` is the user's data folder, for errors to name.
    """
    shipped = Server(server.url, server.ingest_token, origin=server.origin)
    with contextlib.closing(Remote(shipped, timeout_s, server.ingest_account)) as remote:
        try:
            answer = remote.request("GET", "/whoami", {})
            check_is_ours(answer, remote)
            me = told(answer, remote, data, {"account": str, "name": str, "scopes": object})
        except NotLoggedIn as error:
            return str(error) if shipped.token else _without_token(server, data)
        except (NotFound, PermissionDenied) as error:
            return str(error)
        except DaskscopeError:
            return None
    return None if "ingest" in me["scopes"] else _without_scope(me, remote)


async def refusal_soon(server: Server, data: str) -> str | None:
    """The same; None after ANSWER_S. Never raises, and keeps no process from ending."""
    answer = Future[str | None]()
    threading.Thread(target=_ask, args=(server, data, answer), name="daskscope-admission", daemon=True).start()
    try:
        return await asyncio.wait_for(asyncio.wrap_future(answer), ANSWER_S)
    except Exception:  # noqa: BLE001 - host first: a cluster is registered whatever becomes of this
        return None


def _ask(server: Server, data: str, answer: Future[str | None]) -> None:
    if not answer.set_running_or_notify_cancel():
        return
    try:
        answer.set_result(refusal(server, data))
    except Exception as error:  # noqa: BLE001 - it is told to who waits, if anybody still does
        answer.set_exception(error)


def _without_token(server: Server, data: str) -> str:
    if server.token is None:
        return where_tokens_are(server, data)
    return (
        "The token that asks may not be sent to schedulers, and there is none that may report, as for viewers: ask an "
        "admin of the account to make you a member, and run `daskscope login` again, or set daskscope.ingest-token."
    )


def _without_scope(me: Mapping[str, Any], remote: Remote) -> str:
    name, account = remote.clean(me["name"]), remote.clean(me["account"])
    if me.get("role") == "viewer":
        return (
            f"{remote.clean(me.get('user'))} is a viewer of account {account}, and members report from clusters: ask "
            "one of its admins."
        )
    return f"The token {name!r} of account {account} may not report from clusters: it needs one of scope ingest."
