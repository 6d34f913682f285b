"""The JSON routes of what an account wants: of reports, of idle clusters, and of how long things are kept. A bearer
token alone opens those that change something (see bearers)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

from daskscope.errors import BadMessage, NotFound
from daskscope_lambdas.handlers import answering, auditing, bearers, house, posted, reading
from daskscope_lambdas.ports import Missing, Subject
from daskscope_lambdas.service import retention

router = APIGatewayHttpRouter()

MAX_NAMED = 500
"""Users, and clusters, that may have a timeout of their own: a store keeps what an account wants as one item."""

_Days = Annotated[int, msgspec.Meta(ge=1, le=36_500)]
_Timeout = Annotated[float, msgspec.Meta(ge=60, le=10 * 365 * 86_400)] | None
"""Seconds; None: never."""
_User = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""As clusters tell them: a person of this place, or whom the machine knows."""
_Cluster = Annotated[str, msgspec.Meta(pattern="^[1-9][0-9]{0,14}$")]


class _Reports(msgspec.Struct, forbid_unknown_fields=True):
    public: Literal["allow", "deny"] = "allow"
    keep_days: _Days | None = None


class _Idle(msgspec.Struct, forbid_unknown_fields=True):
    timeout_s: _Timeout = None
    users: Annotated[dict[_User, _Timeout], msgspec.Meta(max_length=MAX_NAMED)] = {}
    clusters: Annotated[dict[_Cluster, _Timeout], msgspec.Meta(max_length=MAX_NAMED)] = {}


_EXAMPLES: dict[Subject, dict[str, Any]] = {
    "reports": {"public": "deny", "keep_days": 90},
    "idle": {"timeout_s": 3600, "users": {"ann": 7200}, "clusters": {"12": None}},
    "retention": {"tasks": 30},
}


@router.get("/api/v1/<account>/policy")
def policy(account: str) -> Response[str]:
    answering.check_account(router.current_event, account)
    return answering.answer({subject: _told(account, subject) for subject in get_args(Subject)})


@router.put("/api/v1/<account>/policy/<subject>")
def change(account: str, subject: str) -> Response[str]:
    event = router.current_event
    admin = bearers.admin(event, account)
    if subject not in _EXAMPLES:
        raise NotFound(f"There is no policy of {subject}: there are {', '.join(_EXAMPLES)}.")
    wanted = _wanted(event.raw_event, subject)
    sentence = _checked_names(account, wanted) if subject == "idle" else None
    auditing.record(event, admin, "policy.set", subject, **wanted)
    world = house.adapters()
    said_at = {"set_at": world.clock.now()} if subject == "reports" else {}  # see ReportPolicy
    world.policies.set_wish(account, subject, {**wanted, **said_at})
    return answering.answer(_told(account, subject) | ({"sentence": sentence} if sentence else {}))


def _wanted(event: dict[str, Any], subject: Subject) -> dict[str, Any]:
    """Raises BadMessage, UnsupportedMediaError, TooLarge."""
    example = _EXAMPLES[subject]
    if subject == "reports":
        return msgspec.to_builtins(posted.json_object(event, _Reports, example))
    if subject == "idle":
        return msgspec.to_builtins(posted.json_object(event, _Idle, example))
    try:
        return retention.checked(posted.json_object(event, dict[str, _Days], example))
    except ValueError as error:
        raise BadMessage(str(error)) from error


def _checked_names(account: str, wanted: dict[str, Any]) -> str | None:
    """What to say of users that are named for the first time and of whom nothing is known: a cluster of theirs may come
    yet, or the name is misspelt. Raises BadMessage for a cluster that there is not: its number is of no other."""
    world, before = house.adapters(), _told(account, "idle")
    missing = [
        number for number in wanted["clusters"] if number not in before["clusters"] and not _is_there(account, number)
    ]
    if missing:
        raise BadMessage(
            f"Account {account} has no cluster {', '.join(missing)}: `daskscope clusters` tells their numbers.",
            "$.clusters",
        )
    new = wanted["users"].keys() - before["users"].keys() - {each.user for each in world.users.list(account)}
    if new:
        new -= set(reading.live_catalog().table(account).column("user").to_pylist())
    if not new:
        return None
    return (
        f"Nobody called {', '.join(sorted(new))} is in account {account}, nor has a cluster of theirs reported yet: it "
        "counts once one does."
    )


def _is_there(account: str, number: str) -> bool:
    try:
        house.adapters().clusters.get(account, int(number))
    except Missing:
        return False
    return True


def _told(account: str, subject: Subject) -> dict[str, Any]:
    """What is in force: what was said, over what is so where nothing was."""
    shapes: dict[Subject, msgspec.Struct] = {"reports": _Reports(), "idle": _Idle()}
    said = house.adapters().policies.wish(account, subject)
    if subject not in shapes:
        return said
    usual = msgspec.to_builtins(shapes[subject])
    return {**usual, **{name: said[name] for name in usual if name in said}}
