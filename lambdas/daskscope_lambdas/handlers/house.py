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


def start() -> None:
    """When a handler is imported. In Lambda that is the phase in which a function has a whole core to itself:

    logs become structured lines there, and the adapters are opened before the first event comes. `daskscope serve` has
    plain lines of its own, and opens the adapters when it knows its data folder.
    """
    if "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:
        return
    if not logging.getLogger("daskscope").handlers:
        from aws_lambda_powertools import Logger

        Logger(service="daskscope")  # named like its service, so it is the parent of every `daskscope.*` logger
        logging.getLogger("botocore").setLevel(logging.WARNING)  # it tells each cold start where its credentials are
    adapters()
