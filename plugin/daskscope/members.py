"""The processes of a cluster as users get them: with the packages of which they have different versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from daskscope.records import Records, printable


class Members(Records):
    """Processes in the order in which they came.

    `mismatches`, of the whole cluster: `package` (or `python`), `scheduler` (its version) and `others`, each `role`,
    `version` and `n`; a version is None where the package is missing.
    """

    def __init__(
        self,
        members: Iterable[dict[str, Any]],
        *,
        columns: Sequence[str],
        mismatches: list[dict[str, Any]],
        url: str | None,
    ) -> None:
        super().__init__(members, columns=columns, url=url)
        self.mismatches = mismatches

    def _notes(self, rows: int | None) -> list[str]:
        return [*super()._notes(rows), *map(_told, self.mismatches)]


def _told(found: dict[str, Any]) -> str:
    others = ", ".join(f"{other['role']} {other['version'] or 'none'} ({other['n']})" for other in found["others"])
    return printable(f"{found['package']} differs: scheduler {found['scheduler'] or 'none'}, {others}")
