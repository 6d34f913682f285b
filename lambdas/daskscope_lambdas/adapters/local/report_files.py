"""Files of reports on a disk."""

from __future__ import annotations

from pathlib import Path

from daskscope_lambdas.adapters.local.disk import make_folders
from daskscope_lambdas.adapters.local.mapping import mapped
from daskscope_lambdas.ports import Clock


class DiskReports:
    """Below `root`, which is made if it is not there."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root, self._clock = root, clock
        with mapped(root):
            make_folders(root)
