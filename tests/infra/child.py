"""One handler in a process of its own, as in Lambda: an event a line in; out comes its answer, and what it asked
DynamoDB for.

Without the CDK, which no function has.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

from botocore import handlers

from daskscope_lambdas.registry import KEY

Asked = tuple[str, str, str, tuple[str, ...], tuple[str, ...]]
"""Action as IAM knows it, table, index or nothing, keys of the items; and of a change the attributes that it names,
with `*` where it asks for all."""

_IN_TRANSACTIONS = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}


def asked(operation: str, params: dict[str, Any]) -> Iterator[Asked]:
    """What IAM is asked about a request. Raises ValueError for one that nobody has thought of."""
    match operation:
        case "UpdateItem":
            yield operation, params["TableName"], "", (_key(params),), _attributes(params)
        case "GetItem" | "PutItem" | "DeleteItem":
            yield operation, params["TableName"], "", (_key(params),), ()
        case "BatchGetItem":
            for table, wanted in params["RequestItems"].items():
                yield operation, table, "", tuple(each[KEY]["S"] for each in wanted["Keys"]), ()
        case "TransactWriteItems":
            for action in params["TransactItems"]:
                for kind, told in action.items():
                    yield _IN_TRANSACTIONS[kind], told["TableName"], "", (_key(told),), _attributes(told)
        case "Query":
            yield operation, params["TableName"], params["IndexName"], (), ()
        case _:
            raise ValueError(f"{operation} is new to the tests: what does IAM ask about it?")


def _key(told: dict[str, Any]) -> str:
    item = told["Item"] if "Item" in told else told["Key"]
    return item[KEY]["S"]


def _attributes(told: dict[str, Any]) -> tuple[str, ...]:
    found = {KEY, *told.get("ExpressionAttributeNames", {}).values()}
    if any(told.get(name, "").startswith("ALL_") for name in ("ReturnValues", "ReturnValuesOnConditionCheckFailure")):
        found.add("*")
    return tuple(sorted(found))


def main() -> None:
    noted: list[Asked] = []

    def note(params: dict[str, Any], model: Any, **_: Any) -> None:
        noted.extend(asked(model.name, params))

    # Each session of botocore begins with these, whoever makes it.
    handlers.BUILTIN_HANDLERS.append(("provide-client-params.dynamodb", note))
    handler = importlib.import_module(f"daskscope_lambdas.handlers.{sys.argv[1]}").handler
    for line in sys.stdin:
        noted.clear()
        answer = handler(json.loads(line), None)
        print(json.dumps({"answer": answer, "asked": noted}), flush=True)


if __name__ == "__main__":
    main()
