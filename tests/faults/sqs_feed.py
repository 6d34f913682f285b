"""The far end of an SQS queue for who plays its event source mapping; the clock of what is hidden stands still."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from daskscope_lambdas.ports import Delivery

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

_AT_ONCE = 10
_LONG_S = 3600


class SqsFeed:
    """A QueueFeed. What it gave and nobody deleted stays hidden until `show_all`."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client, self._url = client, url
        self._hidden = set[str]()

    def receive(self, limit: int, hidden_s: float) -> Sequence[Delivery]:
        found: list[Delivery] = []
        while len(found) < limit and (some := self._receive(min(_AT_ONCE, limit - len(found)))):
            found += some
        self._hidden |= {each.receipt for each in found}
        return found

    def _receive(self, limit: int) -> list[Delivery]:
        answer = self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=limit,
            VisibilityTimeout=_LONG_S,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        return [_delivery(each) for each in answer.get("Messages", [])]

    def delete(self, receipts: Sequence[str]) -> None:
        self._each("delete_message_batch", receipts, {})

    def release(self, receipts: Sequence[str]) -> None:
        self._each("change_message_visibility_batch", receipts, {"VisibilityTimeout": 0})

    def bury(self, receipt: str, reason: str) -> None:
        """SQS does that itself, after so many tries as its queue says."""

    def show_all(self) -> None:
        self.release(sorted(self._hidden))

    def _each(self, call: str, receipts: Sequence[str], more: dict[str, Any]) -> None:
        for start in range(0, len(receipts), _AT_ONCE):
            some = receipts[start : start + _AT_ONCE]
            entries = [{"Id": str(n), "ReceiptHandle": receipt} | more for n, receipt in enumerate(some)]
            getattr(self._client, call)(QueueUrl=self._url, Entries=entries)
        self._hidden -= set(receipts)


def _delivery(message: Any) -> Delivery:
    return Delivery(
        id=message["MessageId"],
        receipt=message["ReceiptHandle"],
        body=message["Body"],
        receive_count=int(message["Attributes"]["ApproximateReceiveCount"]),
    )
