import subprocess
import sys
from typing import Any

from botocore.retries.standard import ExponentialBackoff, RetryContext

from daskscope_lambdas.adapters import aws
from daskscope_lambdas.adapters.aws.clients import _CONFIG
from daskscope_lambdas.testing import race

IMPORT = """
import sys
import daskscope_lambdas.adapters.aws
print([name for name in ("boto3", "cryptography", "duckdb", "pyarrow") if name in sys.modules])
"""


def test_it_imports_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_client_is_made_once_and_shared_by_all_threads(clients: aws.Clients) -> None:
    made = race(32, lambda _: clients.dynamodb())
    assert len({id(client) for client in made}) == 1


def test_none_is_made_before_it_is_needed(clients: aws.Clients) -> None:
    assert clients._made == {}
    clients.sqs()
    assert list(clients._made) == ["sqs"]
    clients.close()
    assert clients._made == {}


def test_all_tries_without_an_answer_and_the_pauses_between_end_within_a_function_of_15_s() -> None:
    config: Any = _CONFIG
    assert config.retries["mode"] == "standard"
    n_tries = config.retries["total_max_attempts"]
    longest = ExponentialBackoff(random=lambda: 1.0)
    pauses_s = [longest.delay_amount(RetryContext(attempt_number=n)) for n in range(1, n_tries)]
    assert len(pauses_s) == 2
    assert n_tries * (config.connect_timeout + config.read_timeout) + sum(pauses_s) < 15
    assert config.max_pool_connections >= 32
