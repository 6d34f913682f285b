"""A message as a file: it has its name only once it is whole, and is read as what anybody may have put there.

`<cluster>-<boot>-<seq>.zst.msg`, or `.gz.msg`: the body as it would be posted. A piece of a message is a file of its
own, `<cluster>-<boot>-<seq>-p<part>...`, and comes before the message itself in the order of names.
"""

from __future__ import annotations

import heapq
import os
import secrets
import stat
from collections.abc import Container, Iterable
from contextlib import suppress
from pathlib import Path

from daskscope import wire
from daskscope.compression import Encoding
from daskscope.errors import TooLarge

SUFFIXES: dict[Encoding, str] = {"zstd": ".zst.msg", "gzip": ".gz.msg"}
"""Of what any server takes. What comes after the sample is for the one server that said so."""
MESSAGE, DRAFT, BAD = ".msg", ".tmp", ".bad"
"""A message; one that is being written, or was when its process ended; one that no server will ever take."""


def owner_of(name: str) -> str:
    """`<cluster>-<boot>`: who wrote it."""
    return "-".join(name.split("-", 2)[:2])


def encoding_of(file_name: str) -> Encoding | None:
    return next((encoding for encoding, suffix in SUFFIXES.items() if file_name.endswith(suffix)), None)


def name_of(file_name: str) -> str:
    """The message's own name, without what its file adds."""
    return file_name.removesuffix(SUFFIXES[encoding_of(file_name) or "zstd"])


def write(path: Path, body: bytes, mode: int = 0o600) -> None:
    """Whole or not at all; nothing is left of one that fails. Raises OSError.

    The draft's name is nobody else's: two hosts may write into one folder, and somebody may wait there with a link.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}{DRAFT}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(draft, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode != 0o600 and hasattr(os, "fchmod"):  # not on Windows
                os.fchmod(descriptor, mode)
            file.write(body)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def read(path: Path, *, own: bool = False) -> bytes:
    """A body, never more than a server takes; `own`: only of a file of this user's. Raises TooLarge, or OSError, also
    for what is no regular file: opened without following a link or waiting for whoever writes a pipe."""
    descriptor = os.open(path, os.O_RDONLY | _TRUSTING_NOBODY)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is no regular file")
        if own and os.name == "posix" and found.st_uid != os.getuid():
            raise PermissionError("it belongs to another user")
        if found.st_size > wire.MAX_BODY_BYTES:
            raise TooLarge(f"The file has {found.st_size} bytes, and no message has more than {wire.MAX_BODY_BYTES}.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(wire.MAX_BODY_BYTES)
    finally:
        os.close(descriptor)


_TRUSTING_NOBODY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def first(directory: Path, most: int, apart: Container[str] = ()) -> list[str]:
    """The first file names of messages in a folder, in their order, `most` at most: so many are held at a time, however
    many there are. Raises OSError; a folder that is not there is empty."""
    try:
        with os.scandir(directory) as entries:
            return heapq.nsmallest(most, _messages((entry.name for entry in entries), apart))
    except FileNotFoundError:
        return []


def _messages(names: Iterable[str], apart: Container[str]) -> Iterable[str]:
    return (name for name in names if encoding_of(name) is not None and name not in apart)


def set_aside(path: Path) -> Path:
    """Out of the way, for a person to look at. Raises OSError."""
    return path.rename(path.with_suffix(BAD))


def bring_back(directory: Path) -> None:
    """What was set aside is a message again. Raises OSError; a folder that is not there is empty."""
    with suppress(FileNotFoundError):
        for path in list(directory.glob(f"*{BAD}")):
            message = path.with_suffix(MESSAGE)
            if encoding_of(message.name) is not None:
                with suppress(FileNotFoundError):  # somebody else did
                    path.replace(message)
