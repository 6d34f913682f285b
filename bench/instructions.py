"""What a watched scheduler executes more than a bare one, counted by callgrind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.rows import Budget, Row, progress

TASKS = "watched, a row per task"
VARIANTS = (
    "bare",
    "bare again",
    "watched",
    "of it on the event loop",
    TASKS,
    "plugin that overrides nothing",
    "counting hook",
)


def instructions(tiny: bool) -> Iterator[Row]:
    """Overhead in percent, without and with rows per task; the noise and what hooks cost stand among the peers."""
    n_tasks = 80 if tiny else 2000
    name, budget = f"instructions/{n_tasks}-tasks", Budget("at most", 0.1)
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        how = "valgrind is not installed (Debian: apt-get install valgrind), so nothing was counted."
        yield Row(name=name, value=None, unit="%", budget=budget, how=how)
        return
    # A tiny run shows only that the way works: two variants do.
    counts = _count(valgrind, n_tasks, ("bare", "watched", TASKS) if tiny else VARIANTS)
    bare = counts.pop("bare")
    more = {variant: (count / bare - 1) * 100 for variant, count in counts.items()}
    with_tasks = more.pop(TASKS)
    yield Row(
        name=name,
        value=more.pop("watched"),
        unit="%",
        budget=budget,
        peers=more,
        how=f"instructions (callgrind) of update_graph and state machine, no comms, over {bare:,} of a bare scheduler: "
        f"{n_tasks} tiny tasks on 10 fake workers; ours with one poll, its message masked, encoded and compressed. "
        "`bare again` is the noise.",
    )
    yield Row(
        name=f"{name}/row-per-task",
        value=with_tasks,
        unit="%",
        how="the same with `tasks.transmit` on: two handlers of the workers' messages wrapped, the rows read, encoded "
        "and compressed.",
    )


def _count(valgrind: str, n_tasks: int, variants: tuple[str, ...]) -> dict[str, int]:
    progress("valgrind starts Python, a minute")
    with tempfile.TemporaryDirectory() as folder:
        command = [valgrind, "--tool=callgrind", f"--callgrind-out-file={folder}/%p"]
        command += [sys.executable, "-m", "bench.callgrind_child", str(n_tasks), *variants]
        environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        counts: dict[str, int] = {}
        log = Path(folder, "log")
        with log.open("w") as errors:
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
            with child:
                assert child.stdout is not None
                for line in child.stdout:
                    variant, ready, worked = line.rstrip().split("\t")
                    counts[variant] = _total(Path(folder, worked)) - _total(Path(folder, ready))
                    progress(f"{variant}: {counts[variant]:,} instructions")
        if child.returncode:
            raise RuntimeError(f"callgrind ended with {child.returncode}:\n{log.read_text()[-2000:]}")
    return counts


def _total(file: Path) -> int:
    """Instructions of a process since it, or what it was forked from, began."""
    found = re.search(r"^totals: (\d+)", file.read_text(), re.MULTILINE)
    if not found:
        raise RuntimeError(f"callgrind left no total in {file}.")
    return int(found[1])
