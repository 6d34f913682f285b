"""`daskscope report`: performance reports that are kept on the server, and reports of runs out of what it knows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from daskscope.cli.asking import asking, asking_server, clusters_known, number_of
from daskscope.cli.browser import show
from daskscope.cli.formats import TABLE, document
from daskscope.cli.listing import formatted, listing
from daskscope.errors import ServerUnreachable
from daskscope.records import printable

if TYPE_CHECKING:
    from daskscope.records import Record, Records
    from daskscope.session import Session

_file = click.Path(exists=True, dir_okay=False, path_type=Path)
_target = click.Path(dir_okay=False, path_type=Path)
_report = click.argument("report_id", metavar="REPORT", type=click.IntRange(min=1))
_TITLE = "What it is of, in a few words, for those who see the list."


@click.group()
def report() -> None:
    """Keep performance reports on the server, and make them of runs that are over.

    REPORT is the number that `daskscope report list` tells.
    """


def _list(session: Session, **options: Any) -> Records:
    """List the account's reports, latest first."""
    return session.list_performance_reports(**options)


report.add_command(
    listing(_list, nothing="No report is kept yet: daskscope.performance_report() makes one.", asking=asking_server),
    "list",
)


@report.command()
@asking_server
@click.argument("file", type=_file)
@click.option("--private", is_flag=True, help="For members of the account alone; else for whoever has the address.")
@click.option("--title", metavar="TEXT", help=_TITLE)
@formatted(TABLE, "json")
def upload(session: Session, file: Path, private: bool, title: str | None, form: str) -> None:
    """Keep FILE, an HTML report, on the server, and print its address. Needs a token that may report."""
    _told(session.upload_performance_report(file, private, title=title), form)


@report.command("open")
@asking_server
@_report
@click.option("--browser/--no-browser", default=None, help="Open it, or only print its address.  [default: open it]")
def open_(session: Session, report_id: int, browser: bool | None) -> None:
    """Open the page of REPORT in the browser, and print its address."""
    found = session.get_performance_report(report_id)
    click.echo(printable(found["url"]))
    show(found["url"], browser)


@report.command()
@asking_server
@_report
@click.option("-o", "--output", type=_target, help="Into this file.  [default: the report's own name]")
@click.option("--yes", is_flag=True, help="Do not ask whether a file that is there may be overwritten.")
def download(session: Session, report_id: int, output: Path | None, yes: bool) -> None:
    """Write REPORT to a file, and print which; a private one's is for you alone to read. Scripts of who made it run
    where it is opened."""
    if output is not None and output.exists() and not yes:
        click.confirm(printable(f"{output} is there already: overwrite it"), abort=True, err=True)
    try:
        path = session.download_performance_report(report_id, output)
    except FileExistsError as error:
        raise click.UsageError(f"{error} Say -o FILE.") from error
    except ServerUnreachable:  # which is an OSError, too, and none of the file's
        raise
    except OSError as error:
        raise _unwritten(output or Path(), error) from error
    click.echo(printable(str(path)))


@report.command()
@asking_server
@_report
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(session: Session, report_id: int, yes: bool) -> None:
    """Delete REPORT: within a minute its address leads nowhere. For whose it is, and for admins."""
    if not yes:
        found = session.get_performance_report(report_id)
        whose = found.get("user") or "somebody unknown"
        click.echo(printable(f"Report {found['id']}, {found['filename']!r} of {whose}: {found['url']}"), err=True)
        click.confirm("Delete it", abort=True, err=True)
    gone = session.delete_performance_report(report_id)
    click.echo(printable(str(gone.get("sentence") or f"Report {report_id} is deleted.")), err=True)


@report.command()
@asking_server
@_report
@formatted(TABLE, "json")
def public(session: Session, report_id: int, form: str) -> None:
    """Let whoever has its address see REPORT, and print that."""
    _told(session.change_performance_report(report_id, private=False), form)


@report.command()
@asking_server
@_report
@formatted(TABLE, "json")
def private(session: Session, report_id: int, form: str) -> None:
    """Let members of the account alone see REPORT, and print its new address; the old one leads nowhere."""
    _told(session.change_performance_report(report_id, private=True), form)


@report.command()
@asking
@click.argument("cluster", metavar="[CLUSTER]", required=False, shell_complete=clusters_known)
@click.option("--computation", metavar="ID", help="Of this computation, in place of a cluster.")
@click.option("-o", "--output", type=_target, help="Into this file.  [default: cluster-CLUSTER.html]")
@click.option("--tasks", is_flag=True, help="With single tasks, if daskscope.analytics.tasks.transmit was on.")
@click.option("--upload", "uploads", is_flag=True, help="Keep it on the server, too, and print its address.")
@click.option("--private", is_flag=True, help="With --upload: for members of the account alone.")
def make(
    session: Session,
    cluster: str | None,
    computation: str | None,
    output: Path | None,
    tasks: bool,
    uploads: bool,
    private: bool,
) -> None:
    """Write what is known of CLUSTER as one HTML file that needs no network, and print which file.

    CLUSTER is a number, a scheduler id, a UUID or `latest`. Nobody has to have planned the report.
    """
    if (cluster is None) == (computation is None):
        raise click.UsageError("Say a CLUSTER, or --computation ID: one of the two.")
    if private and not uploads:
        raise click.UsageError("--private is of what is uploaded: say --upload, too.")
    which = None if cluster is None else number_of(session, cluster)
    try:
        path = session.report(which, computation, output, tasks=tasks)
    except ServerUnreachable:  # which is an OSError, too, and none of the file's
        raise
    except OSError as error:
        raise _unwritten(output or Path(), error) from error
    click.echo(printable(str(path)))
    if uploads:
        title = f"Cluster {which}" if which is not None else f"Computation {computation}"
        _told(session.upload_performance_report(path, private, title=title), TABLE)


def _told(kept: Record, form: str) -> None:
    """Where it is, on stdout; and for whom."""
    if form != TABLE:
        document(kept)
        return
    for_whom = "members of the account alone" if kept.get("private") else "whoever has its address"
    click.echo(printable(f"Report {kept.get('id')} is for {for_whom}."), err=True)
    click.echo(printable(kept["url"]))


def _unwritten(path: Path, error: OSError) -> click.FileError:
    return click.FileError(str(error.filename or path), error.strerror or str(error))
