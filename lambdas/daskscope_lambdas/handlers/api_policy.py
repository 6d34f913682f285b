"""The JSON routes of what an account wants: reports, idle clusters, how long things are kept."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

router = APIGatewayHttpRouter()
