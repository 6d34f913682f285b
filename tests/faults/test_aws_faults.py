"""The rows of the stores in AWS: its own client, against what stands for AWS and fails as AWS does."""

import pytest

from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import connect
from tests.emulator import Emulator
from tests.faults.aws_trial import aws, in_aws
from tests.faults.rows import c1_stores_fail, c2_writer_killed, c5_compactor_killed
from tests.faults.stores import opened


@pytest.mark.parametrize("n", [12, pytest.param(1_000, marks=pytest.mark.long)])
def test_what_is_acknowledged_while_aws_fails_is_there(emulator: Emulator, n: int):
    outcome = in_aws(emulator, c1_stores_fail.SHARE, n, 4)
    found = c1_stores_fail.row(outcome)
    assert outcome.failed_calls
    assert (outcome.acked_while_out, outcome.dead) == (0, 0)
    assert found.held, found.figures


@pytest.mark.parametrize("kills", [2, pytest.param(40, marks=pytest.mark.long)])
def test_the_writer_may_be_killed_before_s3(emulator: Emulator, kills: int):
    found = c2_writer_killed.row(c2_writer_killed.in_aws(emulator, kills))
    assert (found.lost, found.doubled) == (0, 0)
    assert found.held, found.figures


@pytest.mark.long
def test_the_compactor_may_be_killed_before_s3(emulator: Emulator):
    found = c5_compactor_killed.Found()
    with aws(emulator) as env, opened(connect(env, FakeClock())) as world:
        where = c5_compactor_killed.Lived(env, world, emulator.environment)
        c5_compactor_killed.days(found, where, c5_compactor_killed.Size(1, 4, 1, 3), seed=5)
    told = c5_compactor_killed.row(found, 4)
    assert (told.lost, told.doubled) == (0, 0)
    assert told.held, told.figures
