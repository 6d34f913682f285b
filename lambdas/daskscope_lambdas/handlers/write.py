"""Queue to lake: one SQS batch becomes one small file per table. A message that cannot be kept fails alone."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.envelope import Envelope, unpack
from daskscope_lambdas.service.write import Writer

logger = logging.getLogger("daskscope.write")

house.start()


@cache
def _writer() -> Writer:
    return Writer(house.adapters().objects, house.adapters().seals)


def _decode(record: SQSRecord) -> tuple[str, Envelope]:
    return record.message_id, unpack(record.body)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """An SQS event to the ids of the messages that failed. Raises StoreError if the lake itself fails."""
    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    with processor(event["Records"], handler=_decode):
        results = processor.process()
    decoded: list[tuple[str, Envelope]] = [result for outcome, result, _ in results if outcome == "success"]
    for outcome, reason, record in results:
        if outcome != "success":  # SQS keeps no reason with what it gives up on: the log is where it stands.
            logger.warning("Message %s cannot be read: %s", record.message_id, reason)
    misfits = {id(envelope) for envelope in _writer().write_what_fits([envelope for _, envelope in decoded])}
    undecoded = [item["itemIdentifier"] for item in processor.response()["batchItemFailures"]]
    unkept = [message_id for message_id, envelope in decoded if id(envelope) in misfits]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in undecoded + unkept]}
