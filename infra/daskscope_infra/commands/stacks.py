"""What CloudFormation knows of a stack."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from daskscope_infra.commands.account import Account, told

SOUND = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE")
"""A stack in another state is not what its template says."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """A stack that is there. `status` is CloudFormation's word."""

    name: str
    status: str
    outputs: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def sound(self) -> bool:
        return self.status in SOUND


def find(here: Account, name: str) -> Deployed | None:
    """None if there is none."""
    client = here.session.client("cloudformation")
    with told():
        try:
            found = client.describe_stacks(StackName=name)["Stacks"][0]
        except client.exceptions.ClientError as error:
            if "does not exist" in str(error):
                return None
            raise
    # Made for a change set that was never carried out: there is nothing in it.
    if found["StackStatus"] == "REVIEW_IN_PROGRESS":
        return None
    outputs = {output.get("OutputKey", ""): output.get("OutputValue", "") for output in found.get("Outputs", [])}
    return Deployed(name, found["StackStatus"], outputs)


@dataclass(frozen=True, slots=True)
class Resource:
    """`kind` like `DynamoDB Table`; `stays` if it outlives the stack."""

    kind: str
    id: str
    stays: bool


def resources(here: Account, name: str) -> list[Resource]:
    """What the stack that is there consists of, and what its template says becomes of that when the stack goes."""
    client = here.session.client("cloudformation")
    with told():
        body: Any = client.get_template(StackName=name, TemplateStage="Original")["TemplateBody"]
        pages = client.get_paginator("list_stack_resources").paginate(StackName=name)
        found = [resource for page in pages for resource in page["StackResourceSummaries"]]
    declared = (json.loads(body) if isinstance(body, str) else body)["Resources"]
    return [
        Resource(
            resource["ResourceType"].removeprefix("AWS::").replace("::", " "),
            resource.get("PhysicalResourceId", ""),
            declared.get(resource["LogicalResourceId"], {}).get("DeletionPolicy", "").startswith("Retain"),
        )
        for resource in found
    ]
