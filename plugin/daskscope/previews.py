"""What `preview()` returns: one message as it leaves, and how that is shown."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape
from typing import Any, cast

WIDTH = 100
"""Characters of a line, where the JSON has a place to break it."""
MAX_SHOWN = 40_000
"""Characters that a repr shows, and a notebook of each part; it says how many more there are."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The next message of a cluster. Shows as a heading and its JSON, indented."""

    server: str | None
    """Where messages go; None if they are kept in `spool`, or if there are none."""
    spool: str | None
    """Folder on the scheduler's machine."""
    sent: bool
    """Whether it went: a cluster that reports sends what it shows. Else it is what the first message would be."""
    json: str = field(repr=False)
    """The message, letter by letter; empty where reporting is disabled."""
    body: bytes = field(repr=False)
    """The same as it is posted."""
    encoding: str | None
    """How `body` is compressed, as its Content-Encoding says."""
    note: str = ""
    """What only later messages will have."""

    @property
    def message(self) -> dict[str, Any] | None:
        """The JSON as Python has it; None where reporting is disabled."""
        return json.loads(self.json) if self.json else None

    @property
    def heading(self) -> str:
        """What it is, how large, and where it goes."""
        if not self.json:
            return "daskscope: nothing leaves this cluster: reporting is disabled (daskscope.analytics.disabled)."
        size = (
            f"{len(self.body):,} bytes as posted ({self.encoding}), {len(self.json.encode()):,} bytes of JSON, "
            f"for {self.server or f'the folder {self.spool} on the machine of the scheduler'}."
        )
        if self.sent:
            return f"daskscope: the next message of this cluster, made now and sent as ever: {size}"
        first = f"daskscope: the first message that this cluster would send: {size} Nothing was sent."
        return f"{first} {self.note}".rstrip()

    @property
    def pretty(self) -> str:
        """The JSON with blanks and line breaks; what a terminal might obey is escaped."""
        return pretty(self.message)

    def __repr__(self) -> str:
        return f"{printable(self.heading)}\n{_cut(self.pretty)}" if self.json else self.heading

    def _repr_html_(self) -> str:
        message = self.message or {}
        plain = {name: value for name, value in message.items() if not isinstance(value, (dict, list))}
        parts = "".join(
            f"<details><summary><code>{escape(name)}</code></summary>{_pre(value)}</details>"
            for name, value in message.items()
            if name not in plain
        )
        return f"<p>{escape(self.heading)}</p>{_pre(plain) if plain else ''}{parts}"


def _pre(value: Any) -> str:
    return f'<pre style="white-space: pre-wrap">{escape(_cut(pretty(value)))}</pre>'


def _cut(text: str) -> str:
    n_more = len(text) - MAX_SHOWN
    return text if n_more <= 0 else f"{text[:MAX_SHOWN]}\n... {n_more:,} more characters: see .json, or print(.pretty)"


def pretty(value: Any) -> str:
    """JSON of a value, lists of numbers many in a line."""
    return printable(_laid_out(value, 0))


def _laid_out(value: Any, indent: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or indent + len(line) <= WIDTH:
        return line
    inner = indent + 2
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        parts = [f"{json.dumps(name, ensure_ascii=False)}: {_laid_out(fields[name], inner)}" for name in fields]
    else:
        items = cast("list[Any]", value)
        parts = [_laid_out(item, inner) for item in items]
        if not any(isinstance(item, (dict, list)) for item in items):
            parts = _filled(parts, WIDTH - inner)
    opening, closing = line[0], line[-1]
    blanks = " " * inner
    return f"{opening}\n{blanks}" + f",\n{blanks}".join(parts) + f"\n{' ' * indent}{closing}"


def _filled(parts: list[str], width: int) -> list[str]:
    """As many in a line as fit."""
    lines = parts[:1]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 2 <= width:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines


def printable(text: str) -> str:
    """Characters that do not print, but for line breaks, as JSON escapes them."""
    lines = text.split("\n")
    return "\n".join(line if line.isprintable() else "".join(map(_escaped, line)) for line in lines)


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
