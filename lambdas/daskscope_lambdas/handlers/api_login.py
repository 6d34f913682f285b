"""The JSON routes of `daskscope login`: a terminal asks, a browser approves."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter

router = APIGatewayHttpRouter()
