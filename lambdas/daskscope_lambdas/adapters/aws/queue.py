"""Queue on SQS. Its other end is the event source mapping of `write`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from daskscope_lambdas.adapters.arguments import check_body
from daskscope_lambdas.adapters.aws.mapping import mapped

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient


class SqsQueue:
    def __init__(self, client: Callable[[], SQSClient], url: str) -> None:
        self._client, self._url = client, url

    def send(self, body: str) -> None:
        check_body(body)
        with mapped(self._url):
            self._client().send_message(QueueUrl=self._url, MessageBody=body)
