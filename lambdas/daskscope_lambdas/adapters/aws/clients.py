"""botocore's clients: made when first asked for, shared by all threads.

botocore itself and not boto3, whose low-level clients these are: a function starts a little sooner.

A try whose answer was lost is repeated, and may then meet its own work: Taken, Conflict, a stale beat. Whoever calls a
port lives with that, for every step may be repeated without effect.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, cast

import botocore.session
from botocore.config import Config

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_s3.client import S3Client
    from types_boto3_sqs.client import SQSClient
    from types_boto3_ssm.client import SSMClient

_CONFIG = Config(
    # Three tries without any answer, and the pauses between them, still end before a function of 15 s does.
    connect_timeout=1,
    read_timeout=3,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=32,
    tcp_keepalive=True,
)
_HOSTS = Config(signature_version="s3v4", s3={"addressing_style": "virtual"})
"""What S3 is signed for is then of the bucket's own region. Else an address that somebody is given leads to another
one's host for as long as a new bucket's name has not spread, or has a signature that S3 takes nowhere else."""
_PATHS = Config(signature_version="s3v4", s3={"addressing_style": "path"})
"""What stands in for AWS has no name of its own for each bucket."""


class Clients:
    """`endpoint_url` is where AWS is, empty for AWS itself. Credentials and region come from where botocore looks."""

    def __init__(self, endpoint_url: str = "") -> None:
        self._new = partial(botocore.session.Session().create_client, endpoint_url=endpoint_url or None)
        self._s3 = _CONFIG.merge(_PATHS if endpoint_url else _HOSTS)
        self._made: dict[str, BaseClient] = {}
        self._turn = threading.Lock()

    def s3(self) -> S3Client:
        return cast("S3Client", self._client("s3"))

    def sqs(self) -> SQSClient:
        return cast("SQSClient", self._client("sqs"))

    def dynamodb(self) -> DynamoDBClient:
        return cast("DynamoDBClient", self._client("dynamodb"))

    def ssm(self) -> SSMClient:
        return cast("SSMClient", self._client("ssm"))

    def close(self) -> None:
        """Close the connections; a client that is asked for again opens its own anew."""
        with self._turn:
            while self._made:
                self._made.popitem()[1].close()

    def _client(self, service: str) -> BaseClient:
        found = self._made.get(service)
        if found is None:
            # Sessions are not made for many threads, their clients are.
            with self._turn:
                config = self._s3 if service == "s3" else _CONFIG
                found = self._made.get(service) or self._new(service, config=config)
                self._made[service] = found
        return found
