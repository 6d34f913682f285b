"""Roles, and what they may do, said narrowly: a `*` needs a reason here, else there is no template.

Tests hold every policy of the template against these reasons, also those that the CDK writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_iam as iam
from constructs import Construct

WILDCARDS: Mapping[str, Mapping[str, str]] = {
    "AWS::IAM::Policy": {
        "<>/open/*": "Files of open days: their names are made of what is in them.",
        "<>/open/audit/*": "What was done to accounts, as it happens: likewise.",
        "<>/sealed/*": "Files of sealed days: a day and an account are a folder.",
        "<>/rollups/*": "Roll-ups of sealed days: likewise.",
        "<>/catalog/*": "All clusters of an account: a moment and an account are a name.",
        "<>/prices/*": "Prices that somebody set: an account is a folder, and their names are made of what is in them.",
        "<>/seals/*": "What sealed days were made of: a day is a folder.",
        "<>/late/*": "Marks of rows that came late: a pair of days is a name.",
        "<>/dead/*": "Messages that could not be kept: their names are made of what is in them.",
        "<>/code/*": "Pieces of code: their names are their hashes. What they hold is encrypted once more.",
        "<>/unused/*": "Which code is about to go: a day and an account are a name.",
        "<>/incoming/*": "Files of reports that were brought: each has a name of random bits.",
        "<>/public/*": "Files of reports that all who know an address may see: likewise.",
        "<>/private/*": "Files of reports of an account's members: likewise.",
        "<>/shown/*": "Copies of those for who was let see one: likewise, with until when.",
        "arn:<>:ssm:<>:<>:parameter/daskscope/<>/<>/keys/*": "Keys of accounts: these come while the stack stands.",
        "<>:*": "A schedule may call a function in any of its versions: there is but one, and the CDK writes it so.",
    },
    "AWS::S3::BucketPolicy": {
        "<>/public/*": "CloudFront, for its one distribution: reports that all who know an address may see.",
        "<>/shown/*": "Likewise: copies of others, for who was let see one.",
    },
    "AWS::KMS::Key": {
        "*": "In the policy of a key this is the key itself.",
        "kms:*": "The account it belongs to, so that its administrators can never lock themselves out.",
        "kms:Encrypt*": "CloudWatch Logs, as its manual says; for log groups of this account alone.",
        "kms:Decrypt*": "Likewise.",
        "kms:ReEncrypt*": "Likewise.",
        "kms:GenerateDataKey*": "Likewise.",
        "kms:Describe*": "Likewise.",
    },
}
"""By the type of resource that holds the policy: what has a `*`, references left out as `<>`, and why it may."""


def service(name: str, conditions: Mapping[str, Mapping[str, str]] | None = None) -> iam.IPrincipal:
    """A service of AWS. Protocols of the CDK name arguments otherwise than its classes do, which pyright minds."""
    return cast(iam.IPrincipal, iam.ServicePrincipal(name, conditions=conditions))


def make_role(scope: Construct, id: str, assumed_by: iam.IPrincipal) -> iam.IRole:
    """A role that may do nothing yet."""
    return cast(iam.IRole, iam.Role(scope, id, assumed_by=assumed_by))


def allow(
    role: iam.IRole,
    actions: Sequence[str],
    resources: Sequence[str],
    conditions: Mapping[str, Mapping[str, str | list[str]]] | None = None,
) -> None:
    """Let `role` do `actions` on `resources` (ARNs). Raises KeyError for a `*` that has no reason in WILDCARDS."""
    role.add_to_principal_policy(iam.PolicyStatement(actions=actions, resources=resources, conditions=conditions))
    stack = Stack.of(role)
    acknowledge(role, {f"Resource::{text}" for each in resources if "*" in (text := flat(stack.resolve(each)))})


def acknowledge(role: iam.IRole, findings: set[str]) -> None:
    """Tell cdk-nag why these are there: `Resource::<ARN>`, as it writes them."""
    reasons = WILDCARDS["AWS::IAM::Policy"]
    for finding in sorted(findings):
        reason = reasons[form(finding.partition("::")[2])]
        Validations.of(role).acknowledge(Acknowledgment(id=f"AwsSolutions-IAM5[{finding}]", reason=reason))


def flat(value: Any) -> str:
    """A resolved value of a template as one text, each reference as `<...>`, just as cdk-nag shows it."""
    match value:
        case str():
            return value
        case {"Fn::Join": [str() as between, [*parts]]}:
            return between.join(map(flat, parts))
        case {"Fn::GetAtt": [str() as resource, str() as attribute]}:
            return f"<{resource}.{attribute}>"
        case {"Ref": str() as name}:
            return f"<{name}>"
        case {"Fn::Select": [int(), {"Fn::Split": [str(), {"Ref": str()}]}]}:
            return json.dumps(value, separators=(",", ":"))
        case _:
            raise ValueError(f"{value!r} is no text, reference or text made of both.")


def form(text: str) -> str:
    """What `flat` gave, whatever the names of the resources."""
    return re.sub(r'<[^>]+>|\{"Fn::Select":[^}]+\}\]\}\]\}', "<>", text)
