"""DeadLetters on the SQS queue that the queue's redrive policy names.

Moved one by one, and not by SQS's own task: that moves all or none, and says when only to who asks again and again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from daskscope_lambdas.adapters.aws.mapping import mapped
from daskscope_lambdas.ports import Buried, Missing

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

HIDDEN_S = 300
"""How long one is hidden from others who look, should nobody be left to show it again; longer than it takes to see all
of them once."""
_AT_A_TIME = 10
"""SQS's most."""
_WAIT_S = 1
"""With no wait SQS asks only some of the machines that a queue lies on, and may find none of many messages."""


@dataclass(frozen=True, slots=True)
class _Taken:
    id: str
    receipt: str
    body: str


class SqsDeadLetters:
    def __init__(self, client: Callable[[], SQSClient], queue_url: str) -> None:
        self._client, self._queue_url = client, queue_url

    def list(self) -> Iterator[Buried]:
        with closing(self._hidden(self._url())) as found:
            for each in found:
                yield Buried(body=each.body, reason=None, buried_at=None)

    def lasting(self) -> Iterator[str]:
        return iter(())  # SQS forgets each 14 days after it was sent at first.

    def send_back(self, chosen: Callable[[str], bool]) -> int:
        sent, url = 0, self._url()
        with closing(self._hidden(url)) as found, mapped(self._queue_url):
            for each in found:
                if chosen(each.body):
                    self._client().send_message(QueueUrl=self._queue_url, MessageBody=each.body)
                    self._client().delete_message(QueueUrl=url, ReceiptHandle=each.receipt)
                    sent += 1
        return sent

    def _url(self) -> str:
        with mapped(self._queue_url):
            told = self._client().get_queue_attributes(QueueUrl=self._queue_url, AttributeNames=["RedrivePolicy"])
            policy = told.get("Attributes", {}).get("RedrivePolicy")
            if policy is None:
                raise Missing(f"{self._queue_url}: has no queue of dead letters.")
            name = json.loads(policy)["deadLetterTargetArn"].rpartition(":")[2]
            return self._client().get_queue_url(QueueName=name)["QueueUrl"]

    def _hidden(self, url: str) -> Generator[_Taken]:
        """Each once, hidden until this ends; those that are still there then are shown again."""
        receipts: dict[str, str] = {}
        with mapped(url):
            try:
                while fresh := [each for each in self._receive(url) if each.id not in receipts]:
                    receipts |= {each.id: each.receipt for each in fresh}
                    yield from fresh
            finally:
                self._show(url, [*receipts.values()])

    def _receive(self, url: str) -> list[_Taken]:
        answer = self._client().receive_message(
            QueueUrl=url, MaxNumberOfMessages=_AT_A_TIME, VisibilityTimeout=HIDDEN_S, WaitTimeSeconds=_WAIT_S
        )
        return [
            _Taken(each.get("MessageId", ""), each.get("ReceiptHandle", ""), each.get("Body", ""))
            for each in answer.get("Messages", [])
        ]

    def _show(self, url: str, receipts: list[str]) -> None:
        """What is gone is told among what failed, and is no matter."""
        for start in range(0, len(receipts), _AT_A_TIME):
            self._client().change_message_visibility_batch(
                QueueUrl=url,
                Entries=[
                    {"Id": str(n), "ReceiptHandle": receipt, "VisibilityTimeout": 0}
                    for n, receipt in enumerate(receipts[start : start + _AT_A_TIME])
                ],
            )
