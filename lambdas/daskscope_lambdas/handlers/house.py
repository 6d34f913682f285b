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


def memory_bytes() -> int | None:
    """Of this process, where Lambda says it."""
    told_mib = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
    return int(told_mib) << 20 if told_mib else None


def start(*ports: wiring.Port) -> None:
    """When a handler is imported. In Lambda that is the phase in which a function has a whole core to itself:

    logs become structured lines there, and what stands behind `ports`, which nearly every event needs, is made before
    the first one comes. `daskscope serve` has plain lines of its own, and opens the adapters when it knows its data
    folder.
    """
    if "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:
        return
    if not logging.getLogger("daskscope").handlers:
        from aws_lambda_powertools import Logger

        # Named like its service, so it is the parent of every `daskscope.*` logger. Lambda reads a line's level only
        # where its time is as in RFC 3339.
        Logger(service="daskscope", use_rfc3339=True)
        logging.getLogger("botocore").setLevel(logging.WARNING)  # it tells each cold start where its credentials are
    adapters().warm(ports)
