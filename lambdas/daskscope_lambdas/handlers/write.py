"""Queue to lake: one SQS batch becomes one small file per table. A message that cannot be kept is put aside alone."""

from __future__ import annotations

from functools import cache
from typing import Any

from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.batch import write_batch
from daskscope_lambdas.service.letters import Letters
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
    bodies = ((record["messageId"], record["body"]) for record in event["Records"])
    failed = write_batch(_writer(), _letters(), bodies)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}
