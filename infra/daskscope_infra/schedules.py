"""What runs by the clock. A run that fails is not tried again: the next one finds what it left."""

from __future__ import annotations

from typing import cast

from aws_cdk import Aws, Duration, Stack
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from constructs import Construct

from daskscope_infra.function import Function
from daskscope_infra.policies import acknowledge, flat, make_role, service

SWEEP_EVERY_MIN = 1
COMPACT_EVERY_MIN = 15
"""As long as a run may take, so that there is one at a time. Until then a busy table gets a file for each window."""


class Schedules(Construct):
    def __init__(self, scope: Construct, id: str, *, sweep: Function, compact: Function) -> None:
        super().__init__(scope, id)
        self._call("Sweep", sweep, SWEEP_EVERY_MIN)
        self._call("Compact", compact, COMPACT_EVERY_MIN)

    def _call(self, name: str, called: Function, every_min: int) -> None:
        called.function.configure_async_invoke(retry_attempts=0, max_event_age=Duration.minutes(every_min))
        mine = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        role = make_role(self, f"{name}Role", service("scheduler.amazonaws.com", mine))
        target = targets.LambdaInvoke(
            called.function, role=role, retry_attempts=0, max_event_age=Duration.minutes(every_min)
        )
        scheduler.Schedule(
            self,
            name,
            description=f"daskscope: {name.lower()}",
            schedule=scheduler.ScheduleExpression.rate(Duration.minutes(every_min)),
            target=cast(scheduler.IScheduleTarget, target),
        )
        acknowledge(role, {f"Resource::{flat(Stack.of(self).resolve(called.function.function_arn))}:*"})
