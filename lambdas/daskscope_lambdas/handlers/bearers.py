"""Who asks, by a bearer token alone: a page of another site can send a browser's cookies, and reach what listens on
loopback, but it has no token."""

from __future__ import annotations

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.tokens import Principal, require


def bearer(event: APIGatewayProxyEventV2, account: str | None = None) -> Principal:
    """In that account; None: in the token's own. Raises NotLoggedIn, NotFound."""
    return house.gate().principal(event.headers.get("authorization"), account)


def itself(event: APIGatewayProxyEventV2) -> Principal:
    """Who may do nothing but give their token back, wherever they are by now. Raises NotLoggedIn."""
    return house.gate().itself(event.headers.get("authorization"))


def admin(event: APIGatewayProxyEventV2, account: str) -> Principal:
    """Somebody who may look after the account. Raises NotLoggedIn, NotFound, PermissionDenied."""
    principal = bearer(event, account)
    require(principal, "admin")
    return principal
