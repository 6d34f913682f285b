"""An origin for what is in a bucket, in which browsers trust nothing: a distribution of CloudFront's.

Its name is under `cloudfront.net`, which is a public suffix: to a browser it is another site than any other
distribution and than the API, so that not even cookies are shared, and nobody has to own a domain for that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from aws_cdk import aws_s3 as s3
from constructs import Construct

from daskscope_lambdas import isolation

_EDGE = Path(__file__).with_name("edge.js")
_REASONS: Mapping[str, str] = {
    "CFR1": "People compute in all countries.",
    "CFR2": "A firewall costs more a month than all else here; there is nothing to attack but files that are read.",
    "CFR3": "A log would hold the addresses of private reports, which are secrets while they are good.",
    "CFR4": "CloudFront's own certificate, under its own name, takes no minimum: nobody has to own a domain.",
}


def make_origin(scope: Construct, bucket: s3.Bucket, *, shortly: str) -> cloudfront.Distribution:
    """Shows what edge.js lets pass; what lies under `shortly` may be held for PUBLIC_S, all else not at all. That it
    may read the bucket is for the bucket to say."""
    access = cloudfront.S3OriginAccessControl(scope, "Access", signing=cloudfront.Signing.SIGV4_ALWAYS)
    # With the CDK's own way CloudFront might read all of the bucket.
    origin = origins.S3BucketOrigin.with_bucket_defaults(
        cast(s3.IBucket, bucket), origin_access_control_id=access.origin_access_control_id
    )
    edge = cloudfront.Function(
        scope,
        "Edge",
        comment="daskscope: which addresses lead to a report",
        runtime=cloudfront.FunctionRuntime.JS_2_0,
        code=cloudfront.FunctionCode.from_inline(edge_code()),
    )
    briefly = cloudfront.CachePolicy(
        scope,
        "Briefly",
        comment="daskscope: public reports, which may be deleted",
        min_ttl=Duration.seconds(0),
        default_ttl=Duration.seconds(isolation.PUBLIC_S),
        max_ttl=Duration.seconds(isolation.PUBLIC_S),
    )
    never = cloudfront.CachePolicy.CACHING_DISABLED
    distribution = cloudfront.Distribution(
        scope,
        "Distribution",
        comment="daskscope: reports, which are nobody's own pages",
        default_behavior=_behavior(scope, "NotCached", origin, edge, never, isolation.NOT_CACHED),
        additional_behaviors={
            f"{shortly}*": _behavior(
                scope, "CachedShortly", origin, edge, cast(cloudfront.ICachePolicy, briefly), isolation.CACHED_SHORTLY
            )
        },
        http_version=cloudfront.HttpVersion.HTTP2_AND_3,
    )
    for rule, reason in _REASONS.items():
        Validations.of(distribution).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))
    return distribution


def _behavior(
    scope: Construct,
    name: str,
    origin: cloudfront.IOrigin,
    edge: cloudfront.Function,
    cache: cloudfront.ICachePolicy,
    cache_control: str,
) -> cloudfront.BehaviorOptions:
    told = {**isolation.HEADERS, "Cache-Control": cache_control}
    content = told.pop("Content-Security-Policy")
    sniffing, referrer = told.pop("X-Content-Type-Options"), told.pop("Referrer-Policy")
    assert (sniffing, referrer) == ("nosniff", "no-referrer"), "CloudFront has words of its own for these"
    headers = cloudfront.ResponseHeadersPolicy(
        scope,
        name,
        comment="daskscope: what browsers are told with a report",
        security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
            content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(
                content_security_policy=content, override=True
            ),
            content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
            referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                referrer_policy=cloudfront.HeadersReferrerPolicy.NO_REFERRER, override=True
            ),
        ),
        custom_headers_behavior=cloudfront.ResponseCustomHeadersBehavior(
            custom_headers=[
                cloudfront.ResponseCustomHeader(header=header, value=value, override=True)
                for header, value in told.items()
            ]
        ),
    )
    return cloudfront.BehaviorOptions(
        origin=origin,
        allowed_methods=cloudfront.AllowedMethods.ALLOW_GET_HEAD,
        cache_policy=cache,
        compress=True,
        function_associations=[
            cloudfront.FunctionAssociation(
                function=edge,
                event_type=cloudfront.FunctionEventType.VIEWER_REQUEST,
            )
        ],
        response_headers_policy=cast(cloudfront.IResponseHeadersPolicy, headers),
        viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.HTTPS_ONLY,
    )


def edge_code() -> str:
    """What CloudFront runs. What it answers itself goes out as the function made it: so that has the headers, too."""
    told = {**isolation.HEADERS, "Cache-Control": isolation.NOT_CACHED, "Content-Type": "text/plain; charset=utf-8"}
    headers = {name.lower(): {"value": value} for name, value in told.items()}
    return _EDGE.read_text().replace("__HEADERS__", json.dumps(headers))
