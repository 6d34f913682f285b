"""Which stacks the commands take for theirs, what they refuse to do to those, and in which order they do the rest."""

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from daskscope_infra.commands.deploy import deploy
from daskscope_infra.commands.destroy import destroy
from tests.aws_world import point_at
from tests.emulator import Emulator
from tests.infra import little_stacks

COMMANDS = {"deploy": deploy, "destroy": destroy}
Command = Callable[..., Result]


@pytest.fixture
def command(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs one on a stack, with a yes to all."""
    point_at(emulator, monkeypatch)

    def invoke(name: str, stack: str, *context: str) -> Result:
        pairs = [word for pair in (f"daskscope:name={stack}", *context) for word in ("--context", pair)]
        return CliRunner().invoke(COMMANDS[name], [*pairs, "--yes"])

    return invoke


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("stack", "outputs", "description"),
    [
        ("payroll", {}, "who earns what"),
        ("payroll-too", little_stacks.OUTPUTS, "says by chance what ours say"),
        ("copied", {}, little_stacks.DESCRIPTION),
    ],
)
def test_a_stack_of_somebody_else_is_left_alone(
    command: Command, emulator: Emulator, name: str, stack: str, outputs: dict[str, str], description: str
) -> None:
    stack = f"{stack}-{name}"
    bucket = little_stacks.make(emulator, stack, outputs, description=description)
    done = command(name, stack)
    assert done.exit_code == 1
    assert f"A stack of the name {stack} is there" in done.output
    assert "is not daskscope's: nothing was changed." in done.output
    assert little_stacks.holds(emulator, bucket)


def test_a_stack_whose_first_deploy_failed_is_ours(command: Command, emulator: Emulator) -> None:
    bucket = little_stacks.make(emulator, "broken", stays=True, fails=True)
    done = command("destroy", "broken")
    assert done.exit_code == 0, done.output
    assert f"left behind, as data always stays: S3 Bucket {bucket}." in done.output
    assert f"  aws s3 rb s3://{bucket} --region eu-west-1\n" in done.output
    assert "broken" not in little_stacks.names(emulator)
    assert not little_stacks.holds(emulator, bucket), "it is still there, and empty"


def test_data_that_stays_is_not_touched(command: Command, emulator: Emulator) -> None:
    keys = "/daskscope/kept/keys"
    bucket = little_stacks.make(emulator, "kept", little_stacks.OUTPUTS | {"Keys": keys}, stays=True)
    ssm = little_stacks.client(emulator, "ssm")
    ssm.put_parameter(Name=f"{keys}/main", Value="k", Type="SecureString")
    done = command("destroy", "kept", "daskscope:remove-data=true")
    assert done.exit_code == 0, done.output
    (said,) = [line for line in done.output.splitlines() if f"S3 Bucket {bucket}" in line]
    assert said.startswith("These stay, and cost what their bytes cost: ")
    assert keys in said
    assert "kept" not in little_stacks.names(emulator)
    assert little_stacks.holds(emulator, bucket)
    assert len(ssm.get_parameters_by_path(Path=keys)["Parameters"]) == 1


def test_keys_are_forgotten_before_the_stack_goes(command: Command, emulator: Emulator) -> None:
    """Whoever runs destroy again finds no stack any more, if CloudFormation went on without it."""
    keys = "/daskscope/used/keys"
    bucket = little_stacks.make(emulator, "used", little_stacks.OUTPUTS | {"Keys": keys}, export="of-used")
    ssm = little_stacks.client(emulator, "ssm")
    for number in range(11):
        ssm.put_parameter(Name=f"{keys}/account-{number}", Value="k", Type="SecureString")
    user = {"Properties": {"QueueName": {"Fn::ImportValue": "of-used"}}, "Type": "AWS::SQS::Queue"}
    formation = little_stacks.client(emulator, "cloudformation")
    formation.create_stack(StackName="user-of-used", TemplateBody=json.dumps({"Resources": {"Queue": user}}))
    done = command("destroy", "used")
    assert done.exit_code == 1
    assert "imported by stack user-of-used" in done.output
    assert "used" in little_stacks.names(emulator)
    assert ssm.get_parameters_by_path(Path=keys)["Parameters"] == []
    assert not little_stacks.holds(emulator, bucket)

    formation.delete_stack(StackName="user-of-used")
    formation.get_waiter("stack_delete_complete").wait(StackName="user-of-used", WaiterConfig={"Delay": 1})
    assert command("destroy", "used").exit_code == 0
    assert "used" not in little_stacks.names(emulator)


def test_a_protected_stack_keeps_its_data(command: Command, emulator: Emulator) -> None:
    bucket = little_stacks.make(emulator, "protected", protected=True)
    done = command("destroy", "protected")
    assert done.exit_code == 1
    assert "is protected from being deleted: nothing was changed." in done.output
    assert little_stacks.holds(emulator, bucket)


def test_a_key_of_ones_own_cannot_be_left_out(command: Command, emulator: Emulator) -> None:
    little_stacks.make(emulator, "keyed", little_stacks.OUTPUTS | {"KeysKmsKey": "arn:aws:kms:of-a-test"})
    done = command("deploy", "keyed")
    assert done.exit_code == 1
    assert "Say CONTEXT=daskscope:customer-key=true beside your other choices." in done.output
    # With it the command goes on, to what it looks at next.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("daskscope_infra.commands.account.BOOTSTRAP", "/of/nobody")
        done = command("deploy", "keyed", "daskscope:customer-key=true")
    assert "is not prepared for the CDK" in done.output
