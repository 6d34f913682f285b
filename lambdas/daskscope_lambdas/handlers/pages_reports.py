"""The pages of reports: their list, and one in its frame.

The report itself is somebody's HTML and stands on another origin: our page says whose it is, and gives it a frame in
which it can reach nothing.
"""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlsplit

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope.errors import BadMessage, NotFound, NotLoggedIn, PermissionDenied
from daskscope_lambdas.handlers import forms, framing, pages, reported, visitors
from daskscope_lambdas.handlers.visitors import SignedIn, Visitor
from daskscope_lambdas.ports import ReportRow
from daskscope_lambdas.service import records

router = APIGatewayHttpRouter()

_PER_PAGE = 50
_NO_ORIGIN = "This server serves no reports: it was started without an origin for them."


@router.get("/<account>/reports")
def reports(account: str) -> Response[str]:
    event = router.current_event
    visitor = visitors.visitor(event, account)
    before = reported.before(event.query_string_parameters)
    rows = reported.keeper().page(account, _PER_PAGE + 1, before)
    policy = reported.keeper().policy(account)
    return pages.page(
        event,
        "reports.html",
        visitor,
        account=account,
        rows=[records.report(row, policy) for row in rows[:_PER_PAGE]],
        policy=policy,
        paged=before is not None,
        cursor=rows[_PER_PAGE - 1].id if len(rows) > _PER_PAGE else None,
    )


@router.get("/<account>/reports/<name>")
def report(account: str, name: str) -> Response[str]:
    event = router.current_event
    row, visitor = _asked(account, name)
    policy = reported.keeper().policy(account)
    is_member = visitor is not None and visitor.account == account
    frame = framing.address(event, row, policy)
    found = pages.page(
        event,
        "report.html",
        visitor,
        account=account,
        r=records.report(row, policy),
        frame=frame,
        no_origin=None if framing.origin(event) else _NO_ORIGIN,
        is_member=is_member,
        may_sign_in=is_member and not isinstance(visitor, SignedIn),
        may_change=isinstance(visitor, SignedIn) and is_member and reported.keeper().may_change(visitor.principal, row),
        may_show=policy.public,
    )
    if frame:
        found.headers["Content-Security-Policy"] = (
            f"{pages.headers()['Content-Security-Policy']}; frame-src {_origin(frame)}"
        )
    return found


@router.get("/<account>/reports/<name>/download")
def download(account: str, name: str) -> Response[str]:
    """On to the file, by an address under which a browser saves it. There is none here to see it alone: without our
    page around it, it could lead its reader elsewhere."""
    event = router.current_event
    row, _ = _asked(account, name)
    found = framing.address(event, row, reported.keeper().policy(account), download=True)
    if not found:
        raise NotFound(_NO_ORIGIN if framing.origin(event) is None else f"The file of report {row.id} is not here.")
    return Response(303, "text/plain; charset=utf-8", "", {**pages.headers(), "Location": found})


@router.post("/<account>/reports/<name>/visibility")
def change(account: str, name: str) -> Response[str]:
    event = router.current_event
    who, given = _posted(account)
    if given.get("private") not in ("true", "false"):
        raise BadMessage("private is true or false.")
    row = reported.set_private(event, who.principal, reported.id_of(account, name), given["private"] == "true")
    return pages.redirect(event, records.report(row, reported.keeper().policy(account))["url"])


@router.post("/<account>/reports/<name>/delete")
def delete(account: str, name: str) -> Response[str]:
    event = router.current_event
    who, _ = _posted(account)
    reported.delete(event, who.principal, reported.id_of(account, name))
    return pages.redirect(event, f"{account}/reports")


def _posted(account: str) -> tuple[SignedIn, dict[str, str]]:
    """Who posts, and the form. Raises NotLoggedIn, NotFound, and what `forms.fields` raises."""
    who = visitors.signed_in(router.current_event, account)
    return who, forms.fields(router.current_event, who.session)


def _asked(account: str, name: str) -> tuple[ReportRow, Visitor | None]:
    """The report whose page this is, and who looks at it: a member, or whoever has the link of a public one.

    Raises NotFound, NotLoggedIn, PermissionDenied.
    """
    event = router.current_event
    number, has_link, link = name.partition("-")
    if has_link:
        visitor = _anybody(account)
        try:
            return reported.keeper().find_public(account, reported.id_of(account, number), link), visitor
        except NotFound:
            if visitor is None or visitor.account != account:
                raise
    visitor = visitors.visitor(event, account)
    return reported.keeper().find(account, reported.id_of(account, number)), visitor


def _anybody(account: str) -> Visitor | None:
    """Who looks: a member of the account, else who is signed in elsewhere, if anybody."""
    with suppress(NotLoggedIn, PermissionDenied, NotFound):
        return visitors.visitor(router.current_event, account)
    return visitors.known(router.current_event)


def _origin(url: str) -> str:
    return "{0.scheme}://{0.netloc}".format(urlsplit(url))
