"""Seals on DynamoDB."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING

from daskscope_lambdas.adapters.arguments import check_forward
from daskscope_lambdas.adapters.aws.table import RefusedError, Table
from daskscope_lambdas.ports import Conflict, Taken
from daskscope_lambdas.registry import KEY

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

_SEALS = "seals"


class DynamoSeals:
    """The boundary, in an item that is not there before the first day."""

    def __init__(self, client: Callable[[], DynamoDBClient], table: str) -> None:
        self._table = Table(client, table)

    def boundary(self) -> date | None:
        item = self._table.get(_SEALS)
        return date.fromisoformat(item["day"]) if item else None

    def advance(self, expected: date | None, day: date) -> None:
        check_forward(expected, day)
        try:
            if expected is None:
                self._table.put_new({KEY: _SEALS, "day": day.isoformat()})
            else:
                days = {"day": day.isoformat(), "expected": expected.isoformat()}
                self._table.update(_SEALS, "SET #day = :day", days, "#day = :expected")
        except (Taken, RefusedError) as error:
            raise Conflict(
                f"The boundary is at {self.boundary()}, not at {expected}: another run sealed {day}."
            ) from error
