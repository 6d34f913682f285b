"""B12: a spool that is full, read-only, no folder at all, or holds what is no message."""

from __future__ import annotations

import errno
import os
import random
import resource
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from daskscope import message_file, testing, wire
from daskscope.compression import compress
from daskscope.shelf import WriteAhead
from tests.faults.oracle import Verdict
from tests.faults.rig import Rig, rig, story
from tests.faults.row import Row

N = 30
N_TORN, N_GOOD = 100, 20
SMALL_BYTES = 4_000
"""Of a spool that holds a few of our messages and no more."""
CUT_BYTES = 512
NOBODY = 65_534
"""A user that owns nothing."""
BEFORE_MS = testing.START_MS - 3_600_000
"""When the scheduler began whose files lie there."""

Case = Callable[[Path], AbstractContextManager[int]]
"""Makes a folder as it is to be; gives how much there is room for."""


def run(short: bool) -> Row:
    """In small without what fails as a read-only folder does, and before a file is written at all."""
    tried = lost = doubled = unhandled = 0
    whole = True
    refused = Counter[int]()
    cases: dict[str, Case] = {
        "room for a few": _small,
        "no room on the disk": lambda folder: _kernel(refused, _limited()),
        "read-only": lambda folder: _kernel(refused, _unprivileged(folder)),
        "a file in its place": _no_folder,
    }
    refusals = {errno.EFBIG} if short else {errno.EFBIG, errno.EACCES}
    for case in list(cases.values())[: 2 if short else None]:
        found, raised = _with(case)
        tried, lost, doubled = tried + found.numbered, lost + found.lost, doubled + found.doubled
        whole, unhandled = whole and found.is_whole, unhandled + raised
    torn, raised, n_aside, n_left = _torn()
    return Row(
        id="B12",
        what="a spool that is full, read-only, no folder, or holds 100 torn files among good ones",
        tried=tried + torn.numbered,
        lost=lost + torn.lost,
        doubled=doubled + torn.doubled,
        held=whole
        and torn.is_whole
        and not (unhandled + raised)
        and n_aside == N_TORN // 2
        and not n_left
        and set(refused) == refusals,
        figures={
            "exceptions": unhandled + raised,
            **{f"refused_by_the_kernel_({errno.errorcode[number]})": n for number, n in refused.items()},
            "torn_set_aside": n_aside,
            "torn_drafts_ignored": N_TORN - N_TORN // 2,
            "good_files_delivered": N_GOOD,
            "messages_left_in_the_spool": n_left,
        },
    )


def _with(case: Case) -> tuple[Verdict, int]:
    """A server that is away for a while, and such a spool; how often something was raised."""
    with TemporaryDirectory(prefix="faults-") as folder, case(Path(folder)) as room_bytes:
        shelf = WriteAhead(Path(folder) / "spool" / "server", room_bytes)
        with rig(shelf=shelf) as it:
            it.proxy.refuse()
            it.line.put_every(story(it.line, last=N - 1), N)
            it.line.at(it.clock.now() + 100, it.proxy.listen)
            raised = _run(it)
            return it.verdict(), raised


def _torn() -> tuple[Verdict, int, int, int]:
    """Of a scheduler that died: good files, torn ones and torn drafts. Also how many were set aside, and are left."""
    with TemporaryDirectory(prefix="faults-") as folder:
        place = Path(folder) / "spool" / "server"
        shelf = WriteAhead(place)
        with rig(shelf=shelf) as it:
            for message in _left_behind(place):
                it.oracle.number(message)
            it.line.put_every(story(it.line, last=N - 1), N)
            raised = _run(it)
            shelf.close()
            left = [path.name for path in place.iterdir()]
            n_aside = sum(name.endswith(".bad") for name in left)
            return it.verdict(), raised, n_aside, sum(name.endswith(".msg") for name in left)


def _left_behind(place: Path) -> Generator[wire.Message]:
    """Good ones; written beside them are torn ones of the same scheduler, with numbers of their own."""
    chance = random.Random(12)
    place.mkdir(parents=True)
    for seq in range(N_GOOD + N_TORN):
        message = testing.message(seq=seq, boot=testing.boot_at(BEFORE_MS), events=[testing.event(no=seq)])
        body, encoding = compress(wire.encode(message), ())
        name = f"{message.cluster}-{message.boot}-{seq:08d}.{'zst' if encoding == 'zstd' else 'gz'}.msg"
        if seq < N_GOOD:
            (place / name).write_bytes(body)
            yield message
        else:
            torn = body[: chance.randrange(len(body))]
            (place / (name if seq % 2 else f"{name}.{seq:08x}.tmp")).write_bytes(torn)


def _run(it: Rig) -> int:
    """To the end; how often the thread would have met what it does not expect."""
    for raised in range(100):
        try:
            it.line.run()
        except Exception:
            continue
        return raised
    return 100


@contextmanager
def _small(folder: Path) -> Generator[int]:
    yield SMALL_BYTES


@contextmanager
def _kernel(refused: Counter[int], during: AbstractContextManager[Callable[..., None]]) -> Generator[int]:
    """The kernel itself refuses what the spool writes, and nothing else that this process does; counts how often."""

    def counted(*args: Any, **kwargs: Any) -> None:
        try:
            write(*args, **kwargs)
        except OSError as error:
            refused[error.errno or 0] += 1
            raise

    with during as write, mock.patch("daskscope.shelf.write", counted):
        yield 1 << 20


@contextmanager
def _limited() -> Generator[Callable[..., None]]:
    """A file may grow to so many bytes, and is cut off there: as on a disk that is full."""

    def under_limit(*args: Any, **kwargs: Any) -> None:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (CUT_BYTES, limits[1]))
        try:
            message_file.write(*args, **kwargs)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    yield under_limit


@contextmanager
def _unprivileged(folder: Path) -> Generator[Callable[..., None]]:
    """A folder that nobody may write into; root, who may, does it as somebody else."""
    place = folder / "spool" / "server"
    place.mkdir(parents=True)
    place.chmod(0o555)

    def as_nobody(*args: Any, **kwargs: Any) -> None:
        user = os.geteuid()
        if user == 0:
            os.seteuid(NOBODY)
        try:
            message_file.write(*args, **kwargs)
        finally:
            os.seteuid(user)

    yield as_nobody
    place.chmod(0o700)


@contextmanager
def _no_folder(folder: Path) -> Generator[int]:
    (folder / "spool").write_text("something else")
    yield 1 << 20
