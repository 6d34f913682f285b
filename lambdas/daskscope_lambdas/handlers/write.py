"""Queue to lake: one SQS batch becomes one small file per table. A message that cannot be kept fails alone."""

from __future__ import annotations

from functools import cache
from typing import Any

from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.batch import write_batch
from daskscope_lambdas.service.write import Writer

house.start("objects", "seals")


@cache
def _writer() -> Writer:
    return Writer(house.adapters().objects, house.adapters().seals)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """An SQS event to the ids of the messages that failed. Raises StoreError if the lake itself fails."""
    failed = write_batch(_writer(), ((record["messageId"], record["body"]) for record in event["Records"]))
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}
