"""The registry's table as the ports over it use it: items as plain values, names of attributes looked after.

In expressions an attribute is `#its_name` (many a plain word is DynamoDB's own), a value `:its_name`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from daskscope_lambdas.adapters.aws.again import BusyError, tries, until_free
from daskscope_lambdas.adapters.aws.mapping import mapped
from daskscope_lambdas.ports import Conflict, StoreError, Taken
from daskscope_lambdas.registry import KEY

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodb.type_defs import (
        AttributeValueTypeDef,
        ConditionCheckTypeDef,
        DeleteItemInputTypeDef,
        KeysAndAttributesUnionTypeDef,
        QueryInputTypeDef,
        TransactWriteItemTypeDef,
        UpdateItemInputTypeDef,
    )

Value = str | bytes | int | float
Item = dict[str, Any]
"""Text and bytes as they are; numbers as their text, for only the reader knows which are integers."""

_BATCH = 100
"""Items that BatchGetItem gives at most."""
_IS_NEW = f"attribute_not_exists(#{KEY})"


class RefusedError(Conflict):
    """The item did not meet the condition. `item` is what it was, None if there is none."""

    def __init__(self, text: str, item: Item | None) -> None:
        super().__init__(text)
        self.item = item


class Table:
    def __init__(self, client: Callable[[], DynamoDBClient], name: str) -> None:
        self._client, self._name = client, name

    def get(self, key: str) -> Item | None:
        """As it is now, whoever wrote it."""
        with self._about(key):
            answer = self._client().get_item(TableName=self._name, Key=_wire({KEY: key}), ConsistentRead=True)
        return _plain(answer["Item"]) if "Item" in answer else None

    def get_many(self, keys: Sequence[str]) -> list[Item]:
        """Those that are there, in the order of `keys`."""
        found: dict[str, Item] = {}
        for start in range(0, len(keys), _BATCH):
            found |= {item[KEY]: item for item in self._batch(keys[start : start + _BATCH])}
        return [found[key] for key in keys if key in found]

    def _batch(self, keys: Sequence[str]) -> Iterator[Item]:
        asked: Mapping[str, KeysAndAttributesUnionTypeDef]
        asked = {self._name: {"Keys": [_wire({KEY: key}) for key in keys], "ConsistentRead": True}}
        for _ in tries():
            with self._about(f"{len(keys)} items"):
                answer = self._client().batch_get_item(RequestItems=asked)
            yield from map(_plain, answer["Responses"].get(self._name, []))
            asked = answer["UnprocessedKeys"]
            if not asked:
                return
        raise StoreError(f"{self._name}: DynamoDB left out items, however often it was asked for them.")

    def put_new(self, values: Mapping[str, Value]) -> None:
        """Raises Taken if there is an item of that key."""

        def put() -> None:
            with self._about(values[KEY]):
                self._client().put_item(
                    TableName=self._name,
                    Item=_wire(values),
                    ConditionExpression=_IS_NEW,
                    ExpressionAttributeNames=_names(_IS_NEW),
                )

        try:
            until_free(put)
        except Conflict as error:
            raise Taken(str(error)) from error.__cause__

    def put(self, values: Mapping[str, Value]) -> None:
        """In place of the item of that key, if there is one."""

        def put() -> None:
            with self._about(values[KEY]):
                self._client().put_item(TableName=self._name, Item=_wire(values))

        until_free(put)

    def delete(self, key: str) -> None:
        """Quiet if there is no such item."""
        with self._about(key):
            self._client().delete_item(TableName=self._name, Key=_wire({KEY: key}))

    def delete_if(self, key: str, values: Mapping[str, Value], condition: str) -> None:
        """Raises Conflict if the item does not meet `condition`."""
        asked: DeleteItemInputTypeDef = {
            "TableName": self._name,
            "Key": _wire({KEY: key}),
            "ConditionExpression": condition,
            "ExpressionAttributeNames": _names(condition),
        }
        if values:
            asked["ExpressionAttributeValues"] = _values(values)
        with self._about(key):
            self._client().delete_item(**asked)

    def take(self, key: str) -> Item | None:
        """The item, which is gone then: of many callers one gets it."""
        with self._about(key):
            answer = self._client().delete_item(TableName=self._name, Key=_wire({KEY: key}), ReturnValues="ALL_OLD")
        return _plain(answer["Attributes"]) if "Attributes" in answer else None

    def put_all_new(self, *items: Mapping[str, Value]) -> None:
        """All or none. Raises Conflict if one of them is there, or is being made by somebody else."""
        puts: list[TransactWriteItemTypeDef] = [
            {
                "Put": {
                    "TableName": self._name,
                    "Item": _wire(item),
                    "ConditionExpression": _IS_NEW,
                    "ExpressionAttributeNames": _names(_IS_NEW),
                }
            }
            for item in items
        ]
        with self._about(items[0][KEY]):
            self._client().transact_write_items(TransactItems=puts)

    def put_all(self, *items: Mapping[str, Value]) -> None:
        """All or none, in place of those that are there."""
        self._together(items[0][KEY], [{"Put": {"TableName": self._name, "Item": _wire(item)}} for item in items])

    def delete_all(self, *keys: str) -> None:
        """All or none. Quiet about those that are not there."""
        self._together(keys[0], [{"Delete": {"TableName": self._name, "Key": _wire({KEY: key})}} for key in keys])

    def write_while(
        self,
        held: Mapping[str, Mapping[str, Value]],
        *,
        put: Mapping[str, Value] | None = None,
        delete: Sequence[str] = (),
    ) -> None:
        """All or none, in place of those that are there. Raises Conflict if one of the items `held`, by key, has other
        values than these, or somebody else changes one at this moment.
        """
        changes: dict[str, TransactWriteItemTypeDef] = {}
        for key, values in held.items():
            told = " AND ".join(f"#{name} = :{name}" for name in values)
            condition: ConditionCheckTypeDef = {
                "TableName": self._name,
                "Key": _wire({KEY: key}),
                "ConditionExpression": told,
                "ExpressionAttributeNames": _names(told),
                "ExpressionAttributeValues": _values(values),
            }
            if put is not None and key == put[KEY]:
                changes[key] = {
                    "Put": {
                        "TableName": self._name,
                        "Item": _wire(put),
                        "ConditionExpression": told,
                        "ExpressionAttributeNames": condition["ExpressionAttributeNames"],
                        "ExpressionAttributeValues": condition["ExpressionAttributeValues"],
                    }
                }
            elif key in delete:
                changes[key] = {"Delete": {**condition}}
            else:
                changes[key] = {"ConditionCheck": condition}
        for key in delete:
            changes.setdefault(key, {"Delete": {"TableName": self._name, "Key": _wire({KEY: key})}})
        with self._about(next(iter(changes))):
            self._client().transact_write_items(TransactItems=list(changes.values()))

    def _together(self, about: object, changes: Sequence[TransactWriteItemTypeDef]) -> None:
        """For changes without a condition: only who changes the same at this moment is in their way."""

        def write() -> None:
            try:
                with self._about(about):
                    self._client().transact_write_items(TransactItems=changes)
            except Conflict as error:
                raise BusyError(str(error)) from error.__cause__

        until_free(write)

    def update(
        self,
        key: str,
        change: str,
        values: Mapping[str, Value],
        condition: str | None = None,
        *,
        unseen: bool = False,
    ) -> Item:
        """The item as it is then; a new one if there was none. Raises RefusedError if it does not meet `condition`.

        `unseen`: nothing is told of the item, for who may not ask for all of its attributes."""
        asked: UpdateItemInputTypeDef = {
            "TableName": self._name,
            "Key": _wire({KEY: key}),
            "UpdateExpression": change,
            "ExpressionAttributeNames": _names(change, condition or ""),
        }
        if not unseen:
            # It costs no reading, and tells in the one request what a reader of the item would see.
            asked["ReturnValues"] = "ALL_NEW"
            asked["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        if condition is not None:
            asked["ConditionExpression"] = condition
        if values:
            asked["ExpressionAttributeValues"] = _values(values)

        def update() -> Item:
            with self._about(key):
                answer = self._client().update_item(**asked)
            return _plain(answer.get("Attributes", {}))

        try:
            return until_free(update)
        except Conflict as error:
            known = error.__cause__.response.get("Item") if isinstance(error.__cause__, ClientError) else None
            raise RefusedError(str(error), _plain(known) if known else None) from error.__cause__

    def count_up(self, key: str, name: str, beside: Mapping[str, Value]) -> int:
        """Add 1 to an attribute, which is 0 before the first time, and return it; `beside` it the item holds these."""
        change = f"SET {', '.join(f'#{other} = :{other}' for other in beside)} ADD #{name} :one"
        with self._about(key):
            answer = self._client().update_item(
                TableName=self._name,
                Key=_wire({KEY: key}),
                UpdateExpression=change,
                ExpressionAttributeNames=_names(change),
                ExpressionAttributeValues=_values({"one": 1, **beside}),
                ReturnValues="UPDATED_NEW",
            )
        return int(_plain(answer["Attributes"])[name])

    def query(
        self,
        index: str,
        condition: str,
        values: Mapping[str, Value],
        *,
        backwards: bool = False,
        limit: int | None = None,
    ) -> Iterator[Item]:
        """What stands in an index: keys only, a moment late. `limit`: how many to ask for at a time."""
        asked: QueryInputTypeDef = {
            "TableName": self._name,
            "IndexName": index,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": _names(condition),
            "ExpressionAttributeValues": _values(values),
            "ScanIndexForward": not backwards,
        }
        if limit is not None:
            asked["Limit"] = limit
        while True:
            with self._about(index):
                answer = self._client().query(**asked)
            yield from map(_plain, answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _about(self, what: object):
        return mapped(f"{self._name} {what}")


def _names(*expressions: str) -> dict[str, str]:
    return {f"#{name}": name for name in re.findall(r"#(\w+)", " ".join(expressions))}


def _values(values: Mapping[str, Value]) -> dict[str, AttributeValueTypeDef]:
    return _wire({f":{name}": value for name, value in values.items()})


def _wire(values: Mapping[str, Value]) -> dict[str, AttributeValueTypeDef]:
    return {name: _attribute(value) for name, value in values.items()}


def _attribute(value: Value) -> AttributeValueTypeDef:
    if isinstance(value, str):
        return {"S": value}
    return {"B": value} if isinstance(value, bytes) else {"N": repr(value)}


def _plain(item: Mapping[str, AttributeValueTypeDef]) -> Item:
    return {name: next(iter(value.values())) for name, value in item.items()}
