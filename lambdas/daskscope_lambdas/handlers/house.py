"""What the functions of one process share: settings, adapters, services; each made once, when first asked for."""

from __future__ import annotations

import logging
import os
from functools import cache

from daskscope_lambdas import wiring
from daskscope_lambdas.env import Env, read
from daskscope_lambdas.service.tokens import Gate


@cache
def env() -> Env:
    return read()


@cache
def adapters() -> wiring.Adapters:
    return wiring.connect(env())


@cache
def gate() -> Gate:
    return Gate(adapters().tokens, adapters().clock)


def start_logging() -> None:
    """Structured lines where Lambda collects them; `daskscope serve` sets up its own, plain ones."""
    if "AWS_LAMBDA_FUNCTION_NAME" in os.environ and not logging.getLogger("daskscope").handlers:
        from aws_lambda_powertools import Logger

        Logger(service="daskscope")  # named like its service, so it is the parent of every `daskscope.*` logger
