"""What is taken for a report: what may be said of one before it comes, and what must stand in its file."""

from __future__ import annotations

import re

from daskscope.errors import BadMessage, TooLarge

MAX_BYTES = 500_000_000
MAX_FILENAME = MAX_TITLE = MAX_USER = 200
"""Characters."""
HEAD_BYTES = 65_536
"""Of a file, in which it has to say that it is HTML."""

_BEFORE_HTML = re.compile(rb"\xef\xbb\xbf|[ \t\r\n\f]+|<!--.*?-->", re.DOTALL)
_HTML = re.compile(rb"<!doctype[ \t\r\n\f]+html\b|<html\b", re.IGNORECASE)


class BadReportError(Exception):
    """A file that is no report, or another one than was announced."""


def check_announced(filename: str, size_bytes: int, title: str | None, user: str | None) -> None:
    """Raises BadMessage, TooLarge."""
    _check_text("filename", filename, MAX_FILENAME)
    if {"/", "\\"} & set(filename) or filename in (".", ".."):
        raise BadMessage(f"filename is {filename!r}; allowed: the name of a file, without its folders.", "$.filename")
    if title is not None:
        _check_text("title", title, MAX_TITLE)
    if user is not None:
        _check_text("user", user, MAX_USER)
    if size_bytes < 1:
        raise BadMessage(f"size_bytes is {size_bytes}; allowed: 1 to {MAX_BYTES:,}.", "$.size_bytes")
    if size_bytes > MAX_BYTES:
        raise TooLarge(
            f"The report has {size_bytes:,} bytes, and {MAX_BYTES:,} are taken at most: report on a shorter part of "
            "the work.",
            "$.size_bytes",
        )


def check_file(size_bytes: int, head: bytes, announced_bytes: int) -> None:
    """`head` has the first HEAD_BYTES of a file, or all of it. Raises BadReportError."""
    if size_bytes != announced_bytes:
        raise BadReportError(
            f"The file has {size_bytes:,} bytes and {announced_bytes:,} were announced: announce and upload it again."
        )
    at = 0
    while found := _BEFORE_HTML.match(head, at):
        at = found.end()
    if not _HTML.match(head, at):
        raise BadReportError(
            "The file does not begin as HTML does, with <!doctype html> or <html (a byte order mark in UTF-8, white "
            f"space and comments of {HEAD_BYTES:,} bytes at most may stand before): upload the file that Dask wrote."
        )


def _check_text(name: str, text: str, most: int) -> None:
    if not (0 < len(text) <= most and text.isprintable()):
        raise BadMessage(f"{name} is of 1 to {most} printable characters.", f"$.{name}")
