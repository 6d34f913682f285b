"""The address of the stack: an HTTP API with two routes. Who may ask is for the functions to say."""

from __future__ import annotations

import json
from typing import cast

from aws_cdk import Acknowledgment, Validations
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from daskscope_infra.log import Log

TELEMETRY = "/api/v1/telemetry"
"""As daskscope.wire says."""

# Nobody needs a token to start a function, and all functions share the account's concurrency: without these, whoever
# calls `api` often enough leaves none for `ingest`. Together they stay below what API Gateway gives an account in any
# region: 2,500 a second, 1,250 at once. Who gets 429 comes again.
_ASKING = apigatewayv2.ThrottleSettings(rate_limit=50, burst_limit=100)
_REPORTING = {"ThrottlingRateLimit": 2000, "ThrottlingBurstLimit": 1000}
"""Twenty thousand clusters that report every ten seconds; in CloudFormation's words, for the CDK has none."""

# Nothing that holds a query string: that of a login link is a token.
_LOGGED = {
    "time": "$context.requestTime",
    "request": "$context.requestId",
    "address": "$context.identity.sourceIp",
    "method": "$context.httpMethod",
    "path": "$context.path",
    "status": "$context.status",
    "bytes": "$context.responseLength",
    "ms": "$context.responseLatency",
    "fault": "$context.integrationErrorMessage",
}


class HttpApi(Construct):
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        ingest: lambda_.IFunction,
        api: lambda_.IFunction,
        log_days: int,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, id)
        gateway = apigatewayv2.HttpApi(
            self,
            "Gateway",
            create_default_stage=False,
            default_integration=HttpLambdaIntegration("Api", api),
        )
        telemetry = gateway.add_routes(
            path=TELEMETRY, methods=[apigatewayv2.HttpMethod.POST], integration=HttpLambdaIntegration("Ingest", ingest)
        )
        log = Log(self, "Access", days=log_days, key=key).group
        stage = gateway.add_stage("Stage", stage_name="$default", auto_deploy=True, throttle=_ASKING)
        # A stage is refused that names a route which is not there yet.
        stage.node.add_dependency(*telemetry)
        told = cast(apigatewayv2.CfnStage, stage.node.default_child)
        told.route_settings = {f"POST {TELEMETRY}": _REPORTING}
        # What the CDK has for this is an interface of JavaScript's, which no Python class can be.
        told.access_log_settings = apigatewayv2.CfnStage.AccessLogSettingsProperty(
            destination_arn=log.log_group_arn, format=json.dumps(_LOGGED)
        )
        self.address = gateway.api_endpoint
        reason = "The functions check the token: an authorizer would be one more, and keep one answer for all routes."
        Validations.of(gateway).acknowledge(Acknowledgment(id="AwsSolutions-APIG4", reason=reason))
