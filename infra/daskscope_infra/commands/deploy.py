"""`make deploy`: the stack into an AWS account, from a clone; the first tokens; what to paste where clusters start.

Safe to run again: what has not changed stays as it is, and the first tokens are made once.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from daskscope_infra import bundles, settings
from daskscope_infra.commands import account, assembly, first_tokens, leftovers, outputs_file, stacks, toolchain
from daskscope_infra.commands.account import Account
from daskscope_infra.commands.assembly import Assembly
from daskscope_infra.commands.command_line import agree, choose, context_option, interruptible, yes_option
from daskscope_infra.commands.stacks import Deployed
from daskscope_infra.commands.toolchain import Toolchain

IDLE = "While nobody computes it costs 0.60 to 0.90 USD a month, by our estimate"
KEY = ", and a dollar more for the key of your own"


@click.command()
@context_option
@yes_option
@click.option("--account", "tenant", default="main", show_default=True, help="daskscope's account of the first tokens.")
@click.option("--user", default=first_tokens.os_user, help="Its first admin.  [default: who runs this]")
@click.option(
    "--outputs", type=click.Path(dir_okay=False, path_type=Path), help="Tokens and addresses go there, as JSON."
)
def deploy(given: tuple[str, ...], yes: bool, tenant: str, user: str, outputs: Path | None) -> None:
    """Make the stack, or bring it up to date with this clone."""
    with interruptible("Stopped. Nothing was changed in AWS."):
        chosen = choose(given)
        _check_python(chosen)
        first_tokens.check(tenant)
        if outputs:
            outputs_file.check(outputs)
        chain = toolchain.find()
        here = account.find()
        found = stacks.find(here, chosen.name)
        _keep_key(found, chosen)
        here.check_bootstrap()
        for family in ("light", "heavy"):
            bundles.build(family, bundles.Target(chosen.architecture, chosen.python))
    with TemporaryDirectory() as folder:
        with interruptible("Stopped. Nothing was changed in AWS."):
            made = assembly.make(chain, given, Path(folder))
            changes = _tell(chain, here, chosen, made, found)
            if changes:
                agree("Go on?", yes)
        if changes:
            _carry_out(chain, here, made)
    _finish(here, made.stack, tenant, user, outputs)


def _check_python(chosen: settings.Settings) -> None:
    """What stands in for AWS runs functions on this machine; AWS has an old C library under its oldest Python."""
    if chosen.python == "3.11" and "AWS_ENDPOINT_URL" not in os.environ:
        raise click.ClickException(
            "daskscope:python is '3.11'; allowed on AWS: 3.13, 3.12. pyarrow and DuckDB need a newer C library than "
            "Lambda has under 3.11: that one is for an emulator."
        )


def _keep_key(found: Deployed | None, chosen: settings.Settings) -> None:
    if found and found.outputs.get("KeysKmsKey") and not chosen.customer_key:
        raise click.ClickException(
            f"The stack {found.name} encrypts with a key of its own, and without that nothing it holds could be read "
            "again: nothing was changed. Say CONTEXT=daskscope:customer-key=true beside your other choices."
        )


def _tell(chain: Toolchain, here: Account, chosen: settings.Settings, made: Assembly, found: Deployed | None) -> bool:
    """Say what a deploy would do; False if that is nothing."""
    click.echo(f"Account {here.id}, region {here.region}, stack {made.stack}:")
    if found is None:
        kinds = ", ".join(f"{number} {kind}" for kind, number in made.kinds().most_common())
        click.echo(f"{made.kinds().total()} new resources: {kinds}.")
        click.echo(f"{IDLE}{KEY if chosen.customer_key else ''}.")
        if chosen.remove_data:
            click.echo("daskscope:remove-data is on: `make destroy` will remove all data with it.")
        return True
    if not found.sound:
        if left := leftovers.sentences(here, found):
            click.echo(left)
        click.echo(
            f"It is in state {found.status}: an earlier deploy failed or goes on. This one waits, then makes it whole."
        )
        return True
    compared = chain.run("diff", "--app", str(made.folder), made.stack, "--fail", quiet=True)
    if compared.returncode == 0:
        click.echo("Nothing has changed.")
        return False
    # Before it stands how the CDK found that out.
    click.echo(compared.stdout[max(0, compared.stdout.find(f"Stack {made.stack}")) :].strip())
    return True


def _carry_out(chain: Toolchain, here: Account, made: Assembly) -> None:
    again = "look at the stack in AWS's console, and run `make deploy` again when that has come to an end"
    with interruptible(f"Stopped watching. CloudFormation goes on with what it has begun: {again}."):
        done = chain.run("deploy", made.stack, "--app", str(made.folder), "--require-approval", "never")
    if done.returncode:
        why = (
            "The deploy failed: above is why. CloudFormation takes back what it began; mend the cause and run it again."
        )
        left = leftovers.sentences(here, stacks.find(here, made.stack))
        raise click.ClickException(f"{why}\n{left}".rstrip())


def _finish(here: Account, name: str, tenant: str, user: str, outputs: Path | None) -> None:
    found = stacks.find(here, name)
    if found is None or not found.sound:
        raise click.ClickException(f"The stack {name} is not whole, though its deploy has ended well: run it again.")
    with interruptible(f"The stack {name} is deployed; its first tokens were not shown. Run `make deploy` again."):
        tokens = first_tokens.make(name, tenant, user)
    click.echo(f"\ndaskscope is at {found.outputs['Address']}")
    if outputs:
        outputs_file.write(outputs, tenant, found.outputs, tokens)
        click.echo(f"Tokens and addresses are in {outputs}, which only you can read.")
    else:
        first_tokens.tell(found.outputs["Address"], name, tenant, tokens)


if __name__ == "__main__":
    deploy()
