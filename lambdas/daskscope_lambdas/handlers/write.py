"""Queue to lake: one SQS batch becomes one small file per table. A message that cannot be kept fails alone."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from daskscope_lambdas.handlers import house
from daskscope_lambdas.service.envelope import Envelope, unpack
from daskscope_lambdas.service.write import Writer

logger = logging.getLogger("daskscope.write")

house.start_logging()


@cache
def _writer() -> Writer:
    return Writer(house.adapters().objects, house.adapters().seals)


@dataclass(frozen=True, slots=True)
class _Item:
    message_id: str
    body_sha256: bytes
    envelope: Envelope


def _decode(record: SQSRecord) -> _Item:
    return _Item(record.message_id, hashlib.sha256(record.body.encode()).digest(), unpack(record.body))


def _name(items: Sequence[_Item]) -> str:
    """The same batch gets the same name: delivered again, it adds no second file."""
    return hashlib.sha256(b"".join(item.body_sha256 for item in items)).hexdigest()[:32]


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """An SQS event to the ids of the messages that failed. Raises StoreError if the lake itself fails."""
    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    with processor(event["Records"], handler=_decode):
        results = processor.process()
    decoded: list[_Item] = [result for outcome, result, _ in results if outcome == "success"]
    failed = [item["itemIdentifier"] for item in processor.response()["batchItemFailures"]] + _write(decoded)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _write(decoded: Sequence[_Item]) -> list[str]:
    """All in one file; if a value fits no table, the halves apart, until only what cannot be kept has failed."""
    if not decoded:
        return []
    try:
        _writer().write([item.envelope for item in decoded], _name(decoded))
    except (ValueError, OverflowError):
        if len(decoded) == 1:
            logger.exception("Message %s fits no table.", decoded[0].message_id)
            return [decoded[0].message_id]
        half = len(decoded) // 2
        return _write(decoded[:half]) + _write(decoded[half:])
    return []
