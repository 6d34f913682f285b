"""`make destroy`: says what goes and what stays, asks once, and deletes the stack.

What stays is for the stack that is there to say, not for this clone's settings: it was decided when it was deployed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import click
from botocore.exceptions import WaiterError

from daskscope_infra.commands import account, leftovers, stacks
from daskscope_infra.commands.account import Account, told
from daskscope_infra.commands.command_line import agree, choose, context_option, interruptible, yes_option
from daskscope_infra.commands.stacks import Deployed, Resource

DATA = ("S3 Bucket", "DynamoDB Table", "KMS Key")
"""The kinds of what holds or opens data."""


@click.command()
@context_option
@yes_option
def destroy(given: tuple[str, ...], yes: bool) -> None:
    """Delete the stack; its data only if it was deployed with daskscope:remove-data."""
    name = choose(given).name
    here = account.find()
    found = stacks.find(here, name)
    if found is None:
        click.echo(f"There is no stack {name} in account {here.id}, region {here.region}: nothing to destroy.")
        return
    # CloudFormation would say so only when the data is gone.
    if found.protected:
        raise click.ClickException(
            f"The stack {name} is protected from being deleted: nothing was changed. Take that off first: `aws "
            f"cloudformation update-termination-protection --no-enable-termination-protection --stack-name {name}`."
        )
    with interruptible("Stopped. Nothing was changed in AWS."):
        left = stacks.left_behind(here, found)
        data = [r for r in stacks.resources(here, name) if r.kind in DATA and r.id not in {lost.id for lost in left}]
        _tell(here, found, data)
        agree(f"Destroy the stack {name}?", yes)
    all_goes = bool(data) and not any(resource.stays for resource in data)
    with interruptible("Stopped. Part of the data is gone, the stack is still there: run it again."):
        if all_goes:
            # Not only at the end: whoever stops watching has no stack any more that says where they are.
            _forget_keys(here, found)
        for resource in data:
            if resource.kind == "S3 Bucket" and not resource.stays:
                _empty(here, resource.id)
    with interruptible("Stopped watching. CloudFormation goes on deleting the stack."):
        _delete(here, name)
        if all_goes:
            # Those that `ingest` made until it went.
            _forget_keys(here, found)
    click.echo(f"The stack {name} is gone.")


def _tell(here: Account, found: Deployed, data: Sequence[Resource]) -> None:
    click.echo(f"Account {here.id}, region {here.region}, stack {found.name}:")
    click.echo("These go: both addresses, functions with their roles and logs, schedules, queues with what is in them.")
    path = found.outputs.get("Keys")
    keys = [f"the keys to users' code (SSM parameters under {path})"] if path else []
    stays = [f"{resource.kind} {resource.id}" for resource in data if resource.stays]
    goes = [f"{resource.kind} {resource.id}" for resource in data if not resource.stays]
    if goes:
        click.secho(f"ALL DATA GOES, FOR GOOD: {'; '.join([*goes, *([] if stays else keys)])}.", bold=True)
    if left := leftovers.sentences(here, found):
        click.echo(left)
    if stays:
        click.echo(f"These stay, and cost what their bytes cost: {'; '.join([*stays, *keys])}.")
        click.echo("To remove them with the stack, `make deploy CONTEXT=daskscope:remove-data=true` first.")


def _empty(here: Account, bucket: str) -> None:
    """CloudFormation deletes no bucket that holds anything."""
    s3 = here.session.resource("s3")
    click.echo(f"Emptying {bucket} ...")
    # Gone already, if a destroy before this one came so far.
    with told(), suppress(s3.meta.client.exceptions.NoSuchBucket):
        s3.Bucket(bucket).objects.all().delete()


def _delete(here: Account, name: str) -> None:
    client = here.session.client("cloudformation")
    click.echo("Deleting; this takes a few minutes ...")
    with told():
        client.delete_stack(StackName=name)
        try:
            client.get_waiter("stack_delete_complete").wait(
                StackName=name, WaiterConfig={"Delay": 5, "MaxAttempts": 360}
            )
        except WaiterError as error:
            events = client.describe_stack_events(StackName=name)["StackEvents"]
            failed = [event for event in events if event.get("ResourceStatus") == "DELETE_FAILED"]
            why = "; ".join(f"{e.get('LogicalResourceId')}: {e.get('ResourceStatusReason', '')}" for e in failed)
            raise click.ClickException(
                f"The stack {name} could not be deleted: {why or error}. Run it again."
            ) from error


def _forget_keys(here: Account, found: Deployed) -> None:
    """Functions made these, not the stack: without their lake they open nothing."""
    path = found.outputs.get("Keys")
    if not path:  # A stack that never was whole: no function was ever asked.
        return
    client = here.session.client("ssm")
    with told():
        pages = client.get_paginator("get_parameters_by_path").paginate(Path=path, Recursive=True)
        names = [parameter.get("Name", "") for page in pages for parameter in page["Parameters"]]
        for start in range(0, len(names), 10):  # the most that one call takes
            client.delete_parameters(Names=names[start : start + 10])


if __name__ == "__main__":
    destroy()
