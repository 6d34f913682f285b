"""CPU of a function's start, from its bundle: its handler and its clients, against boto3 with three clients."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.rows import Budget, Row, progress
from daskscope_infra.bundles import Architecture, BundleError, Family, Target, build

FUNCTIONS: dict[str, tuple[Family, tuple[str, ...]]] = {
    "ingest": ("light", ("s3", "dynamodb", "sqs")),
    "sweep": ("light", ("dynamodb",)),
    "write": ("heavy", ("s3", "dynamodb")),
    "api": ("heavy", ("s3", "dynamodb")),
    "compact": ("heavy", ("s3", "dynamodb")),
}
"""The bundle of each, and the clients that its events need; ingest's are those that it is compared with."""
BUDGETS = {"ingest": Budget("at most", 1.2)}
HANDLER = """
import daskscope_lambdas.handlers.{name}
"""
"""Which opens its adapters and makes the clients, for it believes itself in Lambda."""
BOTO3 = """
import boto3
for name in ("s3", "dynamodb", "sqs"):
    boto3.client(name)
"""
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_LAMBDA_FUNCTION_NAME": "bench",
    "DASKSCOPE_WORLD": "aws",
    "DASKSCOPE_BUCKET": "bench",
    "DASKSCOPE_TABLE": "bench",
    "DASKSCOPE_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/1/bench",
    "DASKSCOPE_KEYS": "/bench",
}
_MACHINES: dict[str, Architecture] = {"aarch64": "arm64", "x86_64": "x86_64"}


def import_cost(tiny: bool) -> Iterator[Row]:
    """A row a function: a ratio of medians."""
    try:
        bundles = _bundles()
    except BundleError as error:
        for name in FUNCTIONS:
            yield _row(name, None, {}, f"No bundle to measure: {str(error).splitlines()[0].rstrip('.')}.")
        return
    wanted = {name: HANDLER.format(name=name) for name in FUNCTIONS}
    found: dict[str, list[float]] = {name: [] for name in ("boto3", *FUNCTIONS)}
    n_rounds = 1 if tiny else 10
    for number in range(n_rounds):
        progress(f"round {number + 1} of {n_rounds}")
        # Turn about, so that a busy machine is busy for all.
        found["boto3"].append(_cpu_ms(BOTO3, bundles["light"]))
        for name, (family, _) in FUNCTIONS.items():
            found[name].append(_cpu_ms(wanted[name], bundles[family]))
    ms = {name: statistics.median(values) for name, values in found.items()}
    for name, (_, clients) in FUNCTIONS.items():
        how = f"process CPU in a fresh process that sees its bundle alone, medians of {n_rounds}, in turn: its handler "
        how += f"imported, adapters and the clients {', '.join(clients)} made; boto3 from the same bundle."
        peers = {f"{name}, ms CPU": ms[name], "boto3 with s3, dynamodb and sqs, ms CPU": ms["boto3"]}
        yield _row(name, ms[name] / ms["boto3"], peers, how)


def _row(name: str, value: float | None, peers: dict[str, float], how: str) -> Row:
    return Row(name=f"import-cost/{name}", value=value, unit="x boto3", budget=BUDGETS.get(name), peers=peers, how=how)


def _bundles() -> dict[Family, Path]:
    """For this machine and Python. Raises BundleError."""
    architecture = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or architecture is None:
        raise BundleError(f"functions run on Linux on arm64 and x86-64, and not on {platform.platform()}.")
    target = Target(architecture, f"{sys.version_info.major}.{sys.version_info.minor}")
    return {"light": build("light", target), "heavy": build("heavy", target)}


def _cpu_ms(code: str, bundle: Path) -> float:
    measured = f"import time\nbegun_s = time.process_time()\n{code}\nprint((time.process_time() - begun_s) * 1e3)"
    # -S: no packages but the bundle's.
    done = subprocess.run(
        [sys.executable, "-S", "-c", measured],
        env=ENVIRONMENT | {"PATH": os.defpath, "PYTHONPATH": str(bundle)},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)
