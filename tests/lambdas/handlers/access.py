"""Who may what: each route and each kind of caller, with what the caller is to get. A route that is not here fails."""

from daskscope import wire

CALLERS: tuple[str, ...] = (
    "nobody", "other admin", "other site", "ingest", "read", "viewer", "member", "admin", "revoked", "expired",
    "removed", "removed elsewhere", "cookie", "cookie viewer", "cookie other", "cookie revoked", "cookie alone",
)  # fmt: skip
"""All but `ingest` and `read`, tokens of sites, may all that their role lets them. `removed` has a token of this very
account, `removed elsewhere` one of another account; `cookie` is a member's session with their form, `cookie alone` the
same without what a form of ours holds."""

ALL: dict[str, str] = dict.fromkeys(CALLERS, "in")


def cells(line: str) -> dict[str, str]:
    """By caller: a status, `no account` for the 404 of an account that is not there, `nothing` for that of a thing
    that is not, and `in` for who got past all that."""
    found = dict(zip(CALLERS, line.replace("account", "no account").split("|"), strict=True))
    return {caller: cell.strip() for caller, cell in found.items()}


# nobody|other admin|other site|ingest|read|viewer|member|admin|revoked|expired|removed|removed elsewhere
#    |cookie|viewer's|other's|revoked|alone
READ = cells("401|account|account|403|in |in |in|in|401|401|401|account|in |in |account|401|in ")
CONTROL = cells("401|account|account|403|403|403|in|in|401|401|401|account|401|401|401|401|401")
ADMIN = cells("401|account|account|403|403|403|403|in|401|401|401|account|401|401|401|401|401")
OWN = cells("401|account|account|403|403|in |in|in|401|401|401|account|401|401|401|401|401")
"""Tokens: a person has some of their own."""
OF_A_SITE = cells("401|account|account|403|403|nothing|nothing|in|401|401|401|account|401|401|401|401|401")
"""A token that is nobody's own."""
ANNOUNCED = cells("401|account|account|403|403|403|in|403|401|401|401|account|401|401|401|401|401")
"""What a member announced is there: nobody else says so."""
TELEMETRY = cells("401|account|account|in|403|403|in|in|401|401|401|account|401|401|401|401|401")
PAGE = cells("401|401|401|401|401|401|401|401|401|401|401|401|in|in |account|401|in")
PAGE_CHANGE = cells("401|401|401|401|401|401|401|401|401|401|401|401|in|403|account|401|403")
START = cells("401|401|401|401|401|401|401|401|401|401|401|401|in|in|in|401|in")
BY_SCHEDULER = START | {"cookie other": "nothing"}
"""Of one's own account, whichever that is."""
WHOAMI = cells("401|account|account|in|in|in|in|in|401|401|401|account|401|401|401|401|401")
SIGN_IN_LINK = cells("401|account|account|403|in|in|in|in|401|401|401|account|401|401|401|401|401")
"""A browser is to read at least."""
GIVE_BACK = cells("401|in|in|in|in|in|in|in|401|401|in|in|401|401|401|401|401")
"""Wherever its user is by now."""
APPROVE = cells("401|401|401|401|401|401|401|401|401|401|401|401|in|in|in|401|in")
APPROVE_CHANGE = APPROVE | {"cookie alone": "403"}
FORM = ALL | {"cookie alone": "403"}
"""Whoever has a code may come in, and who signs out is out; a form that is not ours changes no session."""

API = "/api/v1/<account>"
_CLUSTER = f"{API}/clusters/<cluster>"
_READS = (
    API + "/clusters", _CLUSTER, _CLUSTER + "/groups", _CLUSTER + "/exceptions", _CLUSTER + "/events",
    _CLUSTER + "/workers", _CLUSTER + "/members", _CLUSTER + "/deaths", _CLUSTER + "/logs", _CLUSTER + "/spans",
    _CLUSTER + "/metrics", _CLUSTER + "/tasks", _CLUSTER + "/samples", _CLUSTER + "/computations",
    _CLUSTER + "/profile", _CLUSTER + "/report", API + "/computations", API + "/computations/<computation>",
    API + "/computations/<computation>/report", API + "/profile", API + "/prefixes", API + "/exceptions",
    API + "/deaths", API + "/events", API + "/logs", API + "/metrics", API + "/code", API + "/hardware",
    API + "/compare", API + "/costs", API + "/prices", API + "/users", API + "/policy", API + "/reports",
    API + "/reports/<number>",
)  # fmt: skip

ROUTES: dict[tuple[str, str], dict[str, str]] = {
    **{("GET", path): READ for path in _READS},
    ("GET", API + "/tokens"): OWN,
    ("POST", API + "/tokens"): OWN,
    ("POST", API + "/tokens/<key_id>/rotate"): OF_A_SITE,
    ("DELETE", API + "/tokens/<key_id>"): OF_A_SITE,
    ("GET", API + "/invitations"): ADMIN,
    ("DELETE", API + "/invitations/<id>"): ADMIN,
    ("POST", API + "/users"): ADMIN,
    ("PUT", API + "/users/<user>"): ADMIN,
    ("DELETE", API + "/users/<user>"): ADMIN,
    ("PUT", API + "/policy/<subject>"): ADMIN,
    ("GET", API + "/audit"): ADMIN,
    ("POST", _CLUSTER + "/close"): CONTROL,
    ("POST", API + "/reports"): CONTROL,
    ("POST", API + "/reports/<number>/uploaded"): ANNOUNCED,
    ("PUT", API + "/reports/<number>"): CONTROL,
    ("DELETE", API + "/reports/<number>"): CONTROL,
    ("POST", wire.PATH): TELEMETRY,
    ("GET", "/<account>/analytics"): PAGE,
    ("GET", "/<account>/analytics/clusters/<cluster>"): PAGE,
    ("POST", "/<account>/analytics/clusters/<cluster>/close"): PAGE_CHANGE,
    ("GET", "/<account>/reports"): PAGE,
    ("GET", "/<account>/reports/<name>"): PAGE,
    ("GET", "/<account>/reports/<name>/download"): PAGE,
    ("POST", "/<account>/reports/<name>/visibility"): PAGE_CHANGE,
    ("POST", "/<account>/reports/<name>/delete"): PAGE_CHANGE,
    ("GET", "/"): START,
    ("GET", "/c/<scheduler>"): BY_SCHEDULER,
    ("GET", "/healthz"): ALL,
    ("GET", "/static/<name>"): ALL,
    ("GET", "/login"): ALL,
    ("GET", "/join"): ALL,
    ("GET", "/login/approve"): APPROVE,
    ("POST", "/login/approve"): APPROVE_CHANGE,
    ("POST", "/api/v1/login"): ALL,
    ("POST", "/api/v1/login/token"): ALL,
    ("GET", "/api/v1/whoami"): WHOAMI,
    ("POST", "/api/v1/sign-in-link"): SIGN_IN_LINK,
    # These come last: what they are asked with is good no more.
    ("POST", "/login"): FORM,
    ("POST", "/join"): FORM,
    ("POST", "/logout"): FORM,
    ("POST", "/api/v1/logout"): GIVE_BACK,
}
