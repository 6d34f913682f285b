"""Which files a lake has of a table, an account and some days."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from datetime import date, timedelta
from functools import cache
from pathlib import Path

import pyarrow.fs as pafs

from daskscope_query import layout
from daskscope_query.exclusion import Exclusion
from daskscope_query.tables import SAMPLES

_ONE_BY_ONE = {"local": 62}
"""Up to so many days are listed each by itself, rather than all that there are: in a bucket every listing takes its
time, and tells of a thousand files."""
_FEW = 3
"""Likewise in any other store."""


@cache
def _opened(root: str, pid: int) -> tuple[pafs.FileSystem, str]:  # noqa: ARG001  a forked child must not use its parent's threads
    """Kept, for a bucket's connections are costly to make. Credentials are those of the environment."""
    return pafs.FileSystem.from_uri(root)


class Listing:
    """See Lake."""

    def __init__(
        self,
        root: str,
        boundary: date | None,
        open_files: Collection[str] | None = None,
        without: Mapping[str, Exclusion] | None = None,
    ) -> None:
        self._filesystem, path = _opened(root if "://" in root else str(Path(root).absolute()), os.getpid())
        self._root = path.rstrip("/") + "/"
        self._boundary = boundary or date.min
        self._open_files = open_files
        self._without = without or {}
        self._listed: dict[str, pafs.FileInfo] = {}
        """Files that were listed, by key."""

    def keys(self, table: str, account: str, first: date, last: date) -> list[str]:
        """The files that hold a table's rows of these days: sealed ones of the account, open ones of all accounts."""
        found: list[str] = []
        if first <= self._boundary:
            found += self._sealed(table, account, first, last)
        if last > self._boundary:
            after = max(first, self._boundary + timedelta(1))
            found += self._open(table, after, last)
        return found

    def _sealed(self, table: str, account: str, first: date, last: date) -> list[str]:
        return layout.standing(self._list(layout.sealed_prefix(table, account), first, min(last, self._boundary)))

    def rollup_keys(self, name: str, account: str, first: date, last: date) -> list[str]:
        return layout.standing(self._list(layout.rollup_prefix(name, account), first, min(last, self._boundary)))

    def accounts(self) -> set[str]:
        """Those that have sealed days."""
        selector = pafs.FileSelector(f"{self._root}{layout.SEALED}{SAMPLES.name}", allow_not_found=True)
        return {
            account
            for info in self._filesystem.get_file_info(selector)
            if (account := layout.account_in(info.path + "/"))
        }

    def rollup_days(self, name: str, account: str, first: date, last: date) -> tuple[list[str], list[date]]:
        """`rollup_keys`, and the sealed days within these of which no roll-up stands."""
        found = self._list(layout.rollup_prefix(name, account), first, min(last, self._boundary), "")
        keys = layout.standing(key for key in found if key.endswith(".parquet"))
        unmade = {layout.day_in(key) for key in found if key.endswith("/unmade")} - {layout.day_in(key) for key in keys}
        return keys, sorted(day for day in unmade if day)

    def gone_days(self, table: str, account: str, first: date, last: date) -> set[date]:
        """Days within these whose rows went, for they were kept long enough."""
        keys = self._list(layout.sealed_prefix(table, account), first, last, "/gone")
        return {day for key in keys if (day := layout.day_in(key))}

    def open_days(self, first: date, last: date) -> list[date]:
        """Days after the boundary, within these, on which any message arrived."""
        after = max(first, self._boundary + timedelta(1))
        return sorted({day for key in self._open(SAMPLES.name, after, last) if (day := layout.day_in(key))})

    def _open(self, table: str, first: date, last: date) -> list[str]:
        prefix = f"open/{table}/"
        if self._open_files is None:
            return self._list(prefix, first, last)
        days = {key: layout.day_in(key) for key in self._open_files if key.startswith(prefix)}
        return sorted(key for key, day in days.items() if day and first <= day <= last)

    def _list(self, prefix: str, first: date, last: date, suffix: str = ".parquet") -> list[str]:
        found = {info.path[len(self._root) :]: info for folder in self._folders(prefix, first, last)
                 for info in self._files(folder)}  # fmt: skip
        self._listed |= found
        days = {key: layout.day_in(key) for key in found if key.endswith(suffix)}
        return sorted(key for key, day in days.items() if day and first <= day <= last)

    def _folders(self, prefix: str, first: date, last: date) -> list[str]:
        few = (last - first).days < _ONE_BY_ONE.get(self._filesystem.type_name, _FEW)
        return [layout.in_day(prefix, day) for day in layout.days(first, last)] if few else [prefix]

    def _files(self, prefix: str) -> list[pafs.FileInfo]:
        selector = pafs.FileSelector(self._root + prefix, allow_not_found=True, recursive=True)
        return [info for info in self._filesystem.get_file_info(selector) if info.is_file]

    def _with_late(self, first: date, last: date) -> date:
        """The last day in which rows of these days may stand: some came when theirs was sealed."""
        keys = (info.path[len(self._root) :] for info in self._files(layout.LATE))
        # In the order of days, for a file may have moved more than once.
        for received, day in sorted(mark for key in keys if (mark := layout.late_mark(key))):
            if first <= received <= last:
                last = max(last, day)
        return last
