"""AWS for tests of its adapters: real answers of the emulator, and before them those that it never gives."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any


def refusal(code: str, message: str = "no", **more: Any) -> dict[str, Any]:
    """What AWS answers when it does not do it."""
    return {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}, **more}


class Answers:
    """Gives a client's first calls of an operation these answers and the later ones to the emulator; counts all."""

    def __init__(self, client: Any, **operations: list[dict[str, Any]]) -> None:
        self.calls: Counter[str] = Counter()
        self._operations = operations
        client.meta.events.register("before-call", self._answer)

    def _answer(self, model: Any, **_: Any) -> tuple[Any, dict[str, Any]] | None:
        self.calls[model.name] += 1
        answers = self._operations.get(model.name)
        if not answers:
            return None
        answer = answers.pop(0)
        return SimpleNamespace(status_code=answer["ResponseMetadata"]["HTTPStatusCode"]), answer
