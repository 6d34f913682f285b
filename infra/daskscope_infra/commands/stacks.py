"""What CloudFormation knows of a stack."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import click

from daskscope_infra.commands.account import Account, told
from daskscope_infra.settings import DESCRIPTION

SOUND = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE")
"""A stack in another state is not what its template says."""
NEVER_WHOLE = ("CREATE_FAILED", "ROLLBACK_FAILED", "ROLLBACK_COMPLETE")
"""Its first deploy failed, so that it has no outputs."""
OUTPUTS = frozenset({"Address", "Bucket", "Table", "QueueUrl", "Keys"})
"""What a sound stack of ours says, whichever version of daskscope made it."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """A stack that is there, and is ours. `status` is CloudFormation's word."""

    name: str
    status: str
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    protected: bool = False
    """From being deleted."""

    @property
    def sound(self) -> bool:
        return self.status in SOUND


def find(here: Account, name: str) -> Deployed | None:
    """None if there is none. Raises ClickException if it is somebody else's."""
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
    deployed = Deployed(name, found["StackStatus"], outputs, found.get("EnableTerminationProtection", False))
    with told():
        described = client.get_template_summary(StackName=name).get("Description")
    if described != DESCRIPTION or (deployed.sound and not outputs.keys() >= OUTPUTS):
        raise click.ClickException(
            f"A stack of the name {name} is there in account {here.id}, region {here.region}, and is not daskscope's: "
            "nothing was changed. Choose another name with CONTEXT=daskscope:name=NAME."
        )
    return deployed


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
            _kind(resource["ResourceType"]),
            resource.get("PhysicalResourceId", ""),
            declared.get(resource["LogicalResourceId"], {}).get("DeletionPolicy", "").startswith("Retain"),
        )
        for resource in found
        if resource["ResourceStatus"] != "DELETE_COMPLETE"
    ]


def left_behind(here: Account, found: Deployed) -> list[Resource]:
    """What a first deploy that failed made, and CloudFormation did not take back since its template told it to stay."""
    if found.status not in NEVER_WHOLE:
        return []
    with told():
        pages = here.session.client("cloudformation").get_paginator("describe_stack_events")
        events = [event for page in pages.paginate(StackName=found.name) for event in page["StackEvents"]]
    return [
        Resource(_kind(event.get("ResourceType", "")), event.get("PhysicalResourceId", ""), stays=True)
        for event in events
        if event.get("ResourceStatus") == "DELETE_SKIPPED"
    ]


def _kind(resource_type: str) -> str:
    return resource_type.removeprefix("AWS::").replace("::", " ")
