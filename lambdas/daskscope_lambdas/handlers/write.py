"""Queue to lake: one SQS batch becomes one small file per table. A message that cannot be kept is put aside alone."""

from __future__ import annotations

from functools import cache
from typing import Any

from daskscope_lambdas.handlers import house
from daskscope_lambdas.ports import Delivery
from daskscope_lambdas.service.batch import write_batch
from daskscope_lambdas.service.letters import Letters
from daskscope_lambdas.service.suspects import in_turn
from daskscope_lambdas.service.write import Writer

house.start("objects", "seals")


@cache
def _writer() -> Writer:
    return Writer(house.adapters().objects, house.adapters().seals)


@cache
def _letters() -> Letters:
    return Letters(house.adapters().objects, house.adapters().clock)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """An SQS event to the ids of the messages that are to come again. Raises StoreError if the lake itself fails."""
    failed: list[str] = []
    groups = in_turn([_delivery(record) for record in event["Records"]])
    for group, more in zip(groups, [*groups[1:], None], strict=True):
        unsettled = write_batch(_writer(), _letters(), [(each.id, each.body) for each in group])
        failed += unsettled
        if more:
            # What comes next may end this process, and with it the answer that would have these deleted.
            house.adapters().queue.delete([each.receipt for each in group if each.id not in unsettled])
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _delivery(record: dict[str, Any]) -> Delivery:
    count = int(record["attributes"]["ApproximateReceiveCount"])
    return Delivery(record["messageId"], record["receiptHandle"], record["body"], count)
