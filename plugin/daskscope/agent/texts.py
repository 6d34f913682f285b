"""A log record's text, as it may leave: made once, though several clusters in a process hear the record."""

from __future__ import annotations

import logging
import threading
import traceback
import weakref

from daskscope.agent import OURS
from daskscope.agent.withheld import opening, without_objects

MAX_TEXT = 10_000
"""Characters of one line's text; a longer one is cut and says so."""


def shared_text(record: logging.LogRecord) -> str:
    """`text_of`, remembered until this thread's next record: `__str__` of what is logged is the user's code.

    It hangs on our own logger, because modules that came by value are others for each cluster.
    """
    last = vars(logging.getLogger(OURS)).setdefault("last", threading.local())
    known = getattr(last, "record", None)
    if known is None or known() is not record:
        text = text_of(record)
        last.record, last.text = weakref.ref(record), text  # a record holds a traceback's frames, and these the data
    return last.text


def text_of(record: logging.LogRecord) -> str:
    """Message, traceback and stack, cut; one that cannot be formatted is told as such.

    The record is left as it is: a formatter would keep its own text of the traceback in it, for all who come later.
    """
    shown = opening(record)
    parts = [_message(record) if shown is None else shown[0]]
    if shown is None or shown[1]:
        parts += _traceback(record)
    text = without_objects(str(record.name), "\n".join(parts))
    return clean(text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(text) - MAX_TEXT} more characters)")


def told(error: BaseException) -> str:
    """Type and text of an error, whose `__str__` is the code of whoever raised it."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001
        return f"{type(error).__name__} (whose text cannot be told)"


def clean(text: str) -> str:
    """A lone surrogate has no UTF-8 and becomes `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001  # the user's arguments do not fit, or their texts raise
        template = record.msg if isinstance(record.msg, str) else type(record.msg).__qualname__
        return f"(cannot be formatted: {type(error).__name__}) {template}"


def _traceback(record: logging.LogRecord) -> list[str]:
    parts: list[str] = []
    try:
        if record.exc_info and record.exc_info[0] is not None:
            parts.append("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
        elif record.exc_text:
            parts.append(record.exc_text)
    except Exception as error:  # noqa: BLE001
        parts.append(f"(traceback cannot be formatted: {type(error).__name__})")
    if record.stack_info:
        parts.append(record.stack_info)
    return parts
