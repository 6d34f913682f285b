"""`make bootstrap`: prepares an account and region for the CDK, by its own `cdk bootstrap`; once, or to renew it."""

from __future__ import annotations

import click

from daskscope_infra.commands import account, toolchain
from daskscope_infra.commands.command_line import interruptible


@click.command()
def bootstrap() -> None:
    """Make the bucket and the roles through which the CDK deploys; nothing of daskscope yet."""
    chain = toolchain.find()
    here = account.find()
    with interruptible("Stopped. CloudFormation goes on with the stack CDKToolkit: run `make bootstrap` again."):
        # No app: there is nothing to build for this.
        done = chain.run("bootstrap", f"aws://{here.id}/{here.region}", "--app", "")
    if done.returncode:
        raise click.ClickException("The CDK could not prepare the account: above is why. Mend it, and run this again.")
    click.echo(f"Account {here.id} is prepared in {here.region}: `make deploy` comes next.")


if __name__ == "__main__":
    bootstrap()
