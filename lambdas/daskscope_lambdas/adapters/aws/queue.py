"""Queue on SQS. Its other end is the event source mapping of `write`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from daskscope_lambdas.adapters.arguments import check_body
from daskscope_lambdas.adapters.aws.mapping import mapped

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

_AT_A_TIME = 10
"""SQS's most."""


class SqsQueue:
    def __init__(self, client: Callable[[], SQSClient], url: str) -> None:
        self._client, self._url = client, url

    def send(self, body: str) -> None:
        check_body(body)
        with mapped(self._url):
            self._client().send_message(QueueUrl=self._url, MessageBody=body)

    def delete(self, receipts: Sequence[str]) -> None:
        with mapped(self._url):
            for start in range(0, len(receipts), _AT_A_TIME):
                # What is not deleted comes again, and changes nothing: what failed need not be known.
                self._client().delete_message_batch(
                    QueueUrl=self._url,
                    Entries=[
                        {"Id": str(n), "ReceiptHandle": receipt}
                        for n, receipt in enumerate(receipts[start : start + _AT_A_TIME])
                    ],
                )
