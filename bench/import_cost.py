"""CPU of importing the ingest function, against boto3 with the clients it would need."""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
from collections.abc import Iterator

from bench.rows import Budget, Row

INGEST = "import daskscope_lambdas.handlers.ingest"
BOTO3 = """
import boto3
for name in ("s3", "dynamodb", "sqs"):
    boto3.client(name, region_name="us-east-1", aws_access_key_id="bench", aws_secret_access_key="bench")
"""


def import_cost(tiny: bool) -> Iterator[Row]:
    """One row: a ratio of medians."""
    name, unit, budget = "import-cost/ingest", "x boto3", Budget("at most", 1.2)
    if importlib.util.find_spec("boto3") is None:
        how = "boto3 is not installed (pip install --group bench), so there is nothing to compare with."
        yield Row(name=name, value=None, unit=unit, budget=budget, how=how)
        return
    # One of each first, for the byte code. Then turn about, so that a busy machine is busy for both.
    pairs = [(_cpu_ms(INGEST), _cpu_ms(BOTO3)) for _ in range(2 if tiny else 10)][1:]
    ingest, boto3 = (statistics.median(values) for values in zip(*pairs, strict=True))
    yield Row(
        name=name,
        value=ingest / boto3,
        unit=unit,
        budget=budget,
        peers={"ingest, ms CPU": ingest, "boto3 with s3, dynamodb and sqs, ms CPU": boto3},
        how=f"process CPU of the imports in a fresh process, medians of {len(pairs)}, in turn.",
    )


def _cpu_ms(code: str) -> float:
    measured = f"import time\nbegun_s = time.process_time()\n{code}\nprint((time.process_time() - begun_s) * 1e3)"
    done = subprocess.run([sys.executable, "-c", measured], capture_output=True, text=True, check=True)
    return float(done.stdout)
