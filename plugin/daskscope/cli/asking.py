"""What the commands that ask a server share: which one, about whose clusters, and which cluster."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from click.shell_completion import CompletionItem

from daskscope.arguments import TIMEOUT
from daskscope.errors import NotFound

if TYPE_CHECKING:
    from daskscope.session import Session

NO_CLUSTER = "No cluster yet: `daskscope.register()` on a client makes the first."

_DEFAULT = "[default: the setting, or the server on this machine]"


def whom(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say whom to ask, about whose clusters: `server`, `account` and `timeout`."""
    return _whom(
        command,
        f"A server's address, or where a lake lies: a folder, or s3://BUCKET/PREFIX.  {_DEFAULT}",
        "Whose clusters",
    )


def _whom(command: Callable[..., Any], where: str, whose: str) -> Callable[..., Any]:
    decorators = (
        click.option("--account", "--workspace", "account", metavar="NAME", help=f"{whose}; else the token's own."),
        click.option("--server", metavar="WHERE", help=where),
        click.option("--timeout", metavar="SPAN", default=TIMEOUT, show_default=True, help="To wait for one answer."),
    )
    return functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), command)


def asking(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same options; `command(session, ...)` gets a Session, which is closed after it."""
    return whom(_with_session(command))


def asking_server(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same, of what no lake has: who may what, and reports."""
    run = _with_session(command)

    @functools.wraps(run)
    def check(*, server: str | None, **options: Any) -> Any:
        place = urlsplit(server or "http:")
        if place.scheme not in ("http", "https"):
            shown = "this" if "@" in str(server) else server
            raise click.UsageError(
                f"--server: {shown} is no server, and a lake has none of this; allowed: https://HOST, http://HOST:PORT."
            )
        return run(server=server, **options)

    return _whom(check, f"Its address.  {_DEFAULT}", "The account that is meant")


def _with_session(command: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(command)
    def run(*, account: str | None, server: str | None, timeout: str, **options: Any) -> Any:
        from daskscope.session import Session  # not at the top: `daskscope --help` loads every command

        with Session(server, account=account, timeout=timeout) as session:
            return command(session, **options)

    return run


def hint(text: str) -> None:
    """A word for people, who have a terminal; a program's log is spared."""
    if sys.stderr.isatty():
        click.echo(text, err=True)


def clusters_known(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - click's signature
    """What a shell offers in place of a cluster."""
    from daskscope.cli.known import offered

    return [CompletionItem(value, help=told) for value, told in offered(ctx.params, incomplete)]


cluster_argument = click.argument("cluster", metavar="CLUSTER", shell_complete=clusters_known)


def maybe_a_cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    """[CLUSTER], or --cluster CLUSTER; `command(session, cluster, ...)` gets what names it, or None for all."""

    @click.argument("cluster", metavar="[CLUSTER]", required=False, shell_complete=clusters_known)
    @click.option("--cluster", "named", metavar="CLUSTER", shell_complete=clusters_known, help="The same as CLUSTER.")
    @functools.wraps(command)
    def run(session: Session, *, cluster: str | None, named: str | None, **options: Any) -> Any:
        if cluster and named and cluster != named:
            raise click.UsageError(f"Two clusters, {cluster} and {named}: say one.")
        which = cluster or named
        return command(session, None if which is None else number_of(session, which), **options)

    return run


def number_of(session: Session, cluster: str) -> str:
    """What names the cluster: as given, or of the one that started last. Raises NotFound if there is none."""
    if cluster != "latest":
        return cluster
    found = session.list_clusters(since=None, limit=1)
    if not found:
        raise NotFound(NO_CLUSTER)
    return str(found[0]["id"])


def named(text: str | None) -> Sequence[str] | None:
    """The parts of a list with commas."""
    return None if text is None else [part for each in text.split(",") if (part := each.strip())]
