"""What pyarrow raises of files and buckets, turned into the ports' errors at this one place.

    FileNotFoundError, NotADirectoryError    Missing
    any other OSError, ArrowException        StoreError

The cause is always kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NoReturn

import pyarrow as pa

from daskscope_lambdas.ports import Missing, ReadOnly, StoreError


@contextmanager
def mapped(where: str) -> Generator[None]:
    """Within, pyarrow's errors become ports errors that name `where`: a path or a URI."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Missing(f"{where}: not there.") from error
    except (OSError, pa.ArrowException) as error:
        told = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise StoreError(f"{where}: {told} ({type(error).__name__})") from error


def refused() -> ReadOnly:
    return ReadOnly(
        "This lake is read where it lies, without a server, and nothing can be changed so: ask the server that writes "
        "it."
    )


def refuse(*_: object, **__: object) -> NoReturn:
    """In place of what a port would change. Raises ReadOnly."""
    raise refused()


def unknown(what: str) -> Callable[..., NoReturn]:
    """In place of what a port would tell of `what`, of which a lake holds nothing. It raises ReadOnly."""

    def refuse_to_tell(*_: object, **__: object) -> NoReturn:
        raise ReadOnly(f"A lake without its server has no {what}: ask the server that writes it.")

    return refuse_to_tell
