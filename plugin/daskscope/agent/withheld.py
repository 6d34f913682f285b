"""Lines in which Dask shows users' objects: arguments, results, whole messages. Of these the opening words are told."""

from __future__ import annotations

import logging

Opening = tuple[str, bool]
"""What is told of a line, and whether its traceback may follow."""

LEFT_OUT = "distributed.worker", "Compute Failed\n"
"""Shows a task's arguments. What failed, where and how often is told as an exception."""

OPENINGS: dict[str, dict[str, tuple[str, bool]]] = {
    "asyncio": {
        "Exception in callback ": ("the callback with its arguments", True),
        "Executing ": ("the callback with its arguments", True),
    },
    "distributed.client": {
        "Client %s receives message": ("the message", True),
        "Client receives message": ("the message", True),
        "Error in callback %s": ("the callback with its arguments", True),
    },
    "distributed.comm.utils": {
        "Unserializable Message:": ("the message", False),
        "truncated data stream": ("its bytes", True),
    },
    "distributed.core": {
        "Message from %r:": ("the message", True),
        "odd message": ("the message", True),
    },
    "distributed.protocol.core": {
        "Failed to Serialize": ("its traceback shows the object", False),
        "Failed to serialize (": ("the object", False),
    },
    "distributed.protocol.pickle": {
        "Failed to deserialize": ("its bytes", True),
        "Failed to serialize": ("the object; its traceback shows it, too", False),
    },
    "distributed.scheduler": {
        "Closed comm %r while trying to write": ("the message", True),
        "Detected different `run_spec` for key": ("the tasks with their arguments", True),
    },
    "distributed.worker": {
        "Run Failed\n": ("the function's arguments", False),
    },
    "distributed.worker.state_machine": {
        "Failed to cancel asyncio task": ("the task and its result", True),
        "Unhandled exception in async instruction": ("the task and its result", True),
    },
    "tornado.application": {
        "Exception in callback %r": ("the callback with its arguments", True),
    },
}
"""Logger to the beginnings of its templates, each with what it shows besides, and whether its traceback may go."""

_SHOWN = "Could not serialize object of type", "Can't pickle "
"""Texts of exceptions after which Dask and pickle print the object."""


def stays_here(record: logging.LogRecord) -> bool:
    """Whether nothing of this record may leave."""
    name, beginning = LEFT_OUT
    return record.name == name and str(record.msg).startswith(beginning)


def opening(record: logging.LogRecord) -> Opening | None:
    """What is told instead of a record's message; None if all of it may go."""
    known = OPENINGS.get(record.name)
    if known is not None and isinstance(record.msg, str):
        for beginning, (what, has_traceback) in known.items():
            if record.msg.startswith(beginning):
                return f"{beginning.rstrip(' (:')} (left out: {what})".replace("\n", ""), has_traceback
    return None


def without_objects(name: str, text: str) -> str:
    """A whole text of Dask's loggers: from where it tells what could not be serialized, nothing goes."""
    if name.partition(".")[0] not in ("asyncio", "dask", "distributed", "tornado"):
        return text
    for shown in _SHOWN:
        if shown in text:
            first, found, _ = text.partition("\n")[0].partition(shown)
            return f"{first}{found.rstrip()}... (left out: what cannot be pickled)"
    return text
