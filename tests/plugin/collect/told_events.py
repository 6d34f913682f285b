"""What was told of events, as Python has it."""

import json
from typing import Any

from daskscope import wire


def details(events: list[wire.Event]) -> list[Any]:
    return [json.loads(event.detail) if event.detail else None for event in events]


def of_topic(events: list[wire.Event], topic: str) -> list[wire.Event]:
    return [event for event in events if event.topic == topic]
