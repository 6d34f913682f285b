"""The JSON routes of invitations that nobody has accepted yet. A bearer token alone opens these (see bearers)."""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope_lambdas.handlers import answering, auditing, bearers, inviting
from daskscope_lambdas.service import records

router = APIGatewayHttpRouter()


@router.get("/api/v1/<account>/invitations")
def waiting(account: str) -> Response[str]:
    bearers.admin(router.current_event, account)
    found = inviting.invitations().list(account)
    return answering.part(router.current_event, [records.invitation(each) for each in found])


@router.delete("/api/v1/<account>/invitations/<id>")
def withdraw(account: str, id: str) -> Response[str]:
    event, invitations = router.current_event, inviting.invitations()
    admin = bearers.admin(event, account)
    ticket = invitations.find(account, id)
    found = records.invitation(ticket)
    auditing.record(
        event, admin, "user.withdraw", found["user"] or "", id=id, role=found["role"], invited_by=found["by"]
    )
    invitations.withdraw(ticket)
    return answering.answer({**found, "sentence": f"Nobody joins account {account} by this invitation any more."})
