"""The JSON routes of `daskscope login` and `logout`, in which a terminal asks, a browser approves, and the terminal
fetches; and of the other way round: a browser signed in by who has a token."""

from __future__ import annotations

import msgspec
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope.errors import BadMessage
from daskscope_lambdas.handlers import answering, auditing, bearers, house, posted
from daskscope_lambdas.service import approvals, records, tickets
from daskscope_lambdas.service.approvals import Approvals
from daskscope_lambdas.service.gate import CACHE_S
from daskscope_lambdas.service.rates import Rates
from daskscope_lambdas.service.tokens import require
from daskscope_lambdas.service.words import count

router = APIGatewayHttpRouter()


MOST = 1000
"""Logins that may wait in a process, for somebody to approve them."""
MOST_OF_ONE = 10
"""That one address may ask for in a minute: behind a proxy all have the proxy's."""


class _Asking(msgspec.Struct, forbid_unknown_fields=True):
    client: str


class _Fetching(msgspec.Struct, forbid_unknown_fields=True):
    device_code: str


@house.once
def rates() -> Rates:
    return Rates(house.adapters().clock, MOST, approvals.GOOD_S, MOST_OF_ONE, 60.0)


@router.post("/api/v1/login")
def ask() -> Response[str]:
    event = router.current_event
    client = posted.json_object(event.raw_event, _Asking, {"client": "daskscope on ann-laptop"}).client
    if not (0 < len(client) <= approvals.MAX_CLIENT and client.isprintable()):
        raise BadMessage(f"client is of 1 to {approvals.MAX_CLIENT} printable characters.", "$.client")
    rates().count(event.request_context.http.source_ip)
    asked = _approvals().ask(client)
    told = {"device_code": asked.device_code, "user_code": asked.user_code, "url": asked.url}
    return answering.answer({**told, "interval_s": approvals.INTERVAL_S, "expires_in_s": approvals.GOOD_S})


@router.post("/api/v1/login/token")
def fetch() -> Response[str]:
    example = {"device_code": "4fJ..."}
    given = posted.json_object(router.current_event.raw_event, _Fetching, example)
    world = house.adapters()
    fetched = _approvals().fetch(world.tokens, given.device_code)
    if fetched is None:
        return answering.answer({"status": "pending"}, 202)
    memberships = world.users.of(fetched.user)
    return answering.answer(
        {
            "token": fetched.token,
            "ingest_token": fetched.ingest_token,
            "user": fetched.user,
            "account": fetched.row.account,
            "accounts": [{"account": each.account, "role": each.role} for each in memberships],
            "expires": records.iso(fetched.row.expires_at),
        }
    )


@router.post("/api/v1/logout")
def logout() -> Response[str]:
    """A token may always give itself back, whatever its scopes; what was made of it goes along."""
    event, world = router.current_event, house.adapters()
    principal = bearers.itself(event)
    auditing.record(event, principal, "token.revoke", principal.key_id, reason="logout")
    rows = approvals.log_out(world.tokens, world.clock, principal.key_id)
    sentence = f"Revoked {count(len(rows), 'token')}. Where one was just used it may pass for {CACHE_S:.0f} s more."
    return answering.answer({"revoked": [row.key_id for row in rows], "sentence": sentence})


@router.post("/api/v1/sign-in-link")
def sign_in_link() -> Response[str]:
    """A browser may what the token may, as long as that is good."""
    event, world = router.current_event, house.adapters()
    principal = bearers.bearer(event, posted.account(event.raw_event))
    require(principal, "read")
    row = world.tokens.find(principal.key_id)
    auditing.record(event, principal, "login.link", principal.user or "", scopes=sorted(row.scopes))
    link = tickets.sign_in_link(
        world.tickets, world.clock, principal.account, row.scopes, user=row.user, parent=row.key_id
    )
    return answering.answer({"url": link.url, "expires": records.iso(link.expires_at)}, 201)


def _approvals() -> Approvals:
    world = house.adapters()
    return Approvals(world.tickets, world.clock)
