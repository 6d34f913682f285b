"""The pages on which people come in: sign in, approve a terminal, join an account; and out."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

router = APIGatewayHttpRouter()
