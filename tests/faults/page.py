"""Rows as tables of a page, so that nobody copies figures by hand."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from tests.faults.row import Figure, Row, count, text


def fill(page: Path, rows: Sequence[Row]) -> None:
    """Put the rows between the marks of a page; what came of others stays where none of these tells it. Raises
    ValueError if it has no such marks."""
    written = page.read_text()
    tables = {"rows": _rows(rows)} | ({"peers": _peers(rows)} if any(row.peers for row in rows) else {})
    for name, lines in tables.items():
        before, begin, rest = written.partition(f"<!-- {name} -->")
        _, end, after = rest.partition("<!-- end -->")
        if not (begin and end):
            raise ValueError(f"{page} has no <!-- {name} --> ... <!-- end --> to write between.")
        written = before + begin + "\n\n" + "\n".join(lines) + "\n\n" + end + after
    page.write_text(written)


def _rows(rows: Iterable[Row]) -> Iterable[str]:
    yield (
        f"With Python {platform.python_version()}, distributed {version('distributed')}, on {platform.system()} "
        f"{platform.machine()}."
    )
    yield ""
    yield "| row | fault | form | tried | lost | doubled | held | figures |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        held = "yes" if row.held else "**no**"
        figures = text({name.replace("_", " "): value for name, value in row.figures.items()})
        counts = " | ".join(map(count, (row.tried, row.lost, row.doubled)))
        yield f"| {row.id} | {row.what} | {row.form or '?'} | {counts} | {held} | {figures} |"


def _peers(rows: Iterable[Row]) -> Iterable[str]:
    beside = [row for row in rows if row.peers]
    names = list(dict.fromkeys(name for row in beside for name in row.peers))
    versions = {name: told["version"] for row in beside for name, told in row.peers.items()}
    yield "| row | fault | events | daskscope | " + " | ".join(f"{name} {versions[name]}" for name in names) + " |"
    yield "| --- " * (4 + len(names)) + "|"
    for row in beside:
        ours = _told(row.lost or 0, row.doubled or 0)
        if reported := row.figures.get("reported_lost_events"):
            ours += f", {int(reported):,} lost and reported"
        theirs = " | ".join(_beside(row.peers.get(name, {})) for name in names)
        yield f"| {row.id} | {row.what} | {count(row.tried)} | {ours} | {theirs} |"


def _beside(told: Mapping[str, Figure]) -> str:
    return _told(int(told["lost"]), int(told["came_again"])) if "lost" in told else "-"


def _told(lost: int, again: int) -> str:
    return f"{lost:,} lost" + (f", {again:,} doubled" if again else "")
