import json
import logging
import os
import subprocess
import sys
from datetime import datetime
from typing import Any

import pytest

from daskscope_lambdas import wiring
from daskscope_lambdas.adapters import aws
from daskscope_lambdas.env import AwsEnv
from daskscope_lambdas.handlers import house

AWS = AwsEnv(bucket="b", table="t", queue_url="https://sqs.eu-west-1.amazonaws.com/1/q", keys="/k")
LAMBDA = {
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_LAMBDA_FUNCTION_NAME": "f",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
}
INIT = """
import importlib, json, logging, sys
logging.getLogger().setLevel(logging.INFO)  # as the runtime does
importlib.import_module("daskscope_lambdas.handlers." + sys.argv[1])
from daskscope_lambdas.adapters import aws
from daskscope_lambdas.handlers import house
found = {"opened": house.adapters.is_made()}
vault = house.adapters().vault
found["clients"] = sorted(vault._client.__self__._made)
found["botocore"] = [logging.getLogger("botocore.x").isEnabledFor(level) for level in (logging.INFO, logging.WARNING)]
if "daskscope_query.engine" in sys.modules:
    from daskscope_query import engine
    memory = "SELECT value FROM duckdb_settings() WHERE name = 'memory_limit'"
    found["memory"] = engine.cursor().execute(memory).fetchone()[0]
logging.getLogger("daskscope.write").warning("seen")
logging.getLogger("daskscope.write").debug("not seen")
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    ("function", "clients", "memory"),
    [
        ("ingest", ["dynamodb", "s3", "sqs"], None),
        ("write", ["dynamodb", "s3"], None),
        ("api", ["dynamodb", "s3"], "512.0 MiB"),
        ("sweep", ["dynamodb"], None),
        ("compact", ["dynamodb", "s3"], "512.0 MiB"),
    ],
)
def test_the_init_phase_makes_what_events_need(function: str, clients: list[str], memory: str | None) -> None:
    """In a process of its own, for Lambda imports a handler once in a process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "POWERTOOLS_"))}
    environment = kept | LAMBDA | AWS.variables()
    done = subprocess.run(
        [sys.executable, "-c", INIT, function], env=environment, capture_output=True, text=True, check=True
    )
    line, printed = done.stdout.splitlines()
    found: dict[str, Any] = json.loads(printed)
    assert found["opened"]
    assert found["clients"] == clients
    assert found["botocore"] == [False, True], "it tells each start where its credentials are"
    assert found.get("memory") == memory
    told: dict[str, Any] = json.loads(line)
    assert (told["level"], told["message"]) == ("WARNING", "seen")
    assert "T" in told["timestamp"], "RFC 3339: else Lambda takes every line for INFO"
    assert datetime.fromisoformat(told["timestamp"]).tzinfo


def test_outside_of_lambda_nothing_is_opened_or_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME", raising=False)
    monkeypatch.setattr(house, "read", lambda: pytest.fail("no adapter is asked for"))
    before = logging.getLogger("daskscope").handlers[:]
    house.start("objects", "clusters")
    assert logging.getLogger("daskscope").handlers == before
    assert house.memory_bytes() is None


def test_a_connection_makes_no_client_before_it_is_warmed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(aws.Clients, "_client", lambda _, service: made.append(service))
    world = wiring.connect(AWS)
    assert made == []
    world.warm(["queue", "vault", "seals", "objects"])
    assert made == ["sqs", "ssm", "dynamodb", "s3"]
