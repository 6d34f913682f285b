"""The commands that log in and out: who somebody is, kept for all that asks and reports from this machine."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from daskscope import login as file
from daskscope import parsing, settings
from daskscope.arguments import TIMEOUT, timeout_of
from daskscope.cli.browser import show
from daskscope.cli.given import token_of
from daskscope.discovery import Server, find_server, is_loopback, is_same, shared_folder
from daskscope.errors import DaskscopeError, ServerUnreachable, SettingsError
from daskscope.login import Login
from daskscope.records import printable

if TYPE_CHECKING:
    from daskscope.approval import Approved
    from daskscope.remote import Remote
    from daskscope.settings import Settings

T = TypeVar("T")
_timeout = click.option("--timeout", metavar="SPAN", default=TIMEOUT, show_default=True, help="To wait for one answer.")


@click.command()
@click.option("--server", metavar="URL", help="Its address.  [default: the setting, or the server on this machine]")
@click.option("--token", metavar="TOKEN", help="Keep this one, without a browser; `-` reads it from standard input.")
@click.option("--account", "--workspace", "account", metavar="NAME", help="The one that is meant where none is named.")
@click.option("--browser/--no-browser", "wanted", default=None, help="Open the page, or only print its address.")
@_timeout
def login(server: str | None, token: str | None, account: str | None, wanted: bool | None, timeout: str) -> None:
    """Log in at a server: approve this terminal in a browser in which you are signed in.

    Two tokens are kept in Dask's configuration folder, for you alone to read: one that asks, and one that can only
    report, for schedulers. They are sent to that server and to no other. `daskscope.token` and DASK_DASKSCOPE__TOKEN
    win over them.
    """
    from daskscope.approval import checked

    found = settings.load().but(server=_address(server), account=account)
    token = token_of(token, "--token")
    _on_disk("written", file.prepare)
    there = _server(found, token)
    if there.url.startswith("http://") and not is_loopback(there.url):
        _say(f"{there.url} has no TLS: whoever is on the way there can read the tokens.")
    with contextlib.closing(_remote(there, timeout)) as remote:
        done = checked(remote, found.data) if token else _approved(remote, found.data, wanted)
    try:
        kept = done.in_account(account)
        _on_disk("written", lambda: file.keep(kept))
    except (DaskscopeError, click.ClickException):
        if token is None:  # nobody has those that were made
            with contextlib.suppress(DaskscopeError):  # of two failures the first is told
                _end(done.login, found.data, timeout)
        raise
    _say(f"Logged in at {kept.server} {done.words(kept.account)}. The login is kept in {file.path()}.")
    _warn(settings.load(), kept)


@click.command()
@_timeout
def logout(timeout: str) -> None:
    """Forget who is logged in here, and end the tokens of the login.

    Clusters that report with them report no more. A token that you brought (`login --token`) is forgotten here and good
    still: others may use it, or you elsewhere.
    """
    known = _on_disk("read", file.kept)
    if known is None:
        _say(f"Nobody is logged in here: there is no {file.path()}.")
        return
    _on_disk("removed", file.forget)
    try:
        ended = _end(known, settings.load().data, timeout)
    except DaskscopeError:
        _say(f"The login at {known.server} is forgotten here, but its tokens may be good there until they expire:")
        raise
    _say(f"Logged out of {known.server}. {ended}".rstrip())


def _approved(remote: Remote, data: str, wanted: bool | None) -> Approved:
    """As somebody in a browser says. Raises DaskscopeError."""
    from daskscope import __version__
    from daskscope.approval import Approval

    approval = Approval(remote, data)
    request = approval.request(f"daskscope {__version__} on {socket.gethostname()}"[:100])
    _say(
        f"Open {request.url} in a browser, and approve the terminal with the code {request.user_code} (within "
        f"{request.expires_in_s / 60:.0f} minutes)."
    )
    show(request.url, wanted)
    return approval.wait(request)


def _end(known: Login, data: str, timeout: str) -> str:
    """Its tokens are good no more, but for one that somebody brought; a sentence that says so."""
    from daskscope.approval import end

    if known.is_given:
        return "The token that you brought is good still: `daskscope token revoke` ends one."
    with contextlib.closing(_remote(Server(known.server, known.token, origin="login"), timeout)) as remote:
        return end(remote, data)


def _remote(server: Server, timeout: str) -> Remote:
    from daskscope.remote import Remote  # not at the top: `daskscope --help` loads every command

    return Remote(server, timeout_of(timeout))


def _server(found: Settings, token: str | None) -> Server:
    """Where to log in, with what was given and with nothing else. Raises ServerUnreachable, SettingsError."""
    if shared_folder(found.server) is not None:
        raise SettingsError("daskscope.server", found.server, "http://HOST:PORT or https://HOST: a folder knows nobody")
    there = find_server(found)
    if there is None:
        raise ServerUnreachable(
            "No server to log in at: daskscope.server is not set, and none runs on this machine. Name it: "
            "`daskscope login --server https://HOST`."
        )
    return Server(there.url, token, origin="given", address=there.address)


def _address(server: str | None) -> str | None:
    """Raises UsageError, which shows no password."""
    try:
        return parsing.url("server", server)
    except SettingsError as error:
        shown = "the address" if "@" in str(server) else repr(server)
        raise click.UsageError(
            f"--server: {shown} is none of a server; allowed: https://HOST, http://HOST:PORT."
        ) from error


def _on_disk(done: str, act: Callable[[], T]) -> T:
    """What `act` does to the file. Raises ClickException that names it."""
    try:
        return act()
    except OSError as error:
        reason = error.strerror or error
        raise click.ClickException(
            f"{file.path()} cannot be {done} ({reason}). It is in Dask's configuration folder, which DASK_CONFIG names."
        ) from error


def _warn(found: Settings, kept: Login) -> None:
    """Of what keeps the login from being used, or gives away more than it must."""
    if kept.ingest_token is None:
        _say("It may not report: clusters that are registered here need another token.")
    elif kept.ingest_token == kept.token:
        _say("Schedulers that are registered here get this very token, with all that it may.")
    if found.server is not None and not is_same(found.server, kept.server):
        _say(f"But daskscope.server is {found.server}, and the login is not used there: unset it, or set it anew.")
    if found.token is not None:
        _say("But daskscope.token is set, and wins over the login: `daskscope config token` says where.")


def _say(text: str) -> None:
    click.echo(printable(text), err=True)
