"""What a first deploy that failed leaves behind, and how to remove it.

No command does that by itself: what stands there looks like what holds the data of a stack that is well.
"""

from __future__ import annotations

from daskscope_infra.commands import stacks
from daskscope_infra.commands.account import Account
from daskscope_infra.commands.stacks import Deployed

_REMOVE = {
    # Refused if anything is in it.
    "S3 Bucket": ("aws s3 rb s3://{id} --region {region}",),
    "DynamoDB Table": (
        "aws dynamodb update-table --no-deletion-protection-enabled --table-name {id} --region {region}",
        "aws dynamodb wait table-exists --table-name {id} --region {region}",
        "aws dynamodb delete-table --table-name {id} --region {region}",
    ),
    "KMS Key": ("aws kms schedule-key-deletion --key-id {id} --region {region}",),
}
"""Kind of resource to the commands that end one."""


def sentences(here: Account, found: Deployed | None) -> str:
    """Empty if nothing was left."""
    left = stacks.left_behind(here, found) if found else []
    if not left:
        return ""
    named = ", ".join(f"{resource.kind} {resource.id}" for resource in left)
    how = [line.format(id=r.id, region=here.region) for r in left for line in _REMOVE.get(r.kind, ())]
    return "\n".join(
        [
            f"The first deploy failed and left behind, as data always stays: {named}.",
            "No later deploy takes that up. It is empty, for nobody was told where to report to. To remove it:",
            *(f"  {line}" for line in how),
        ]
    )
