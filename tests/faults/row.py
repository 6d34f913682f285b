"""One fault, tried: what came of it, and whether that is what was promised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Figure = int | float | str
Form = Literal["short", "part", "long"]


@dataclass(frozen=True, slots=True)
class Row:
    """`tried`: messages, orders, kills, ... as `what` says; `lost` and `doubled` of them, silently."""

    id: str
    what: str
    tried: int
    lost: int | None
    doubled: int | None
    """None where the row is not about that."""
    held: bool
    """All of what the row promises, its figures included; never what a clock on the wall says."""
    figures: Mapping[str, Figure] = field(default_factory=dict[str, Figure])
    peers: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict[str, Mapping[str, Figure]])
    """By name, what became of as many events that others sent through the same trouble."""
    form: Form | None = None
    """`short`: in small, as tests run it. `part`: at length, but with less of what takes long. `long`: all of it."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def from_json(fields: Mapping[str, Any]) -> Row:
    return Row(**fields)


def count(n: int | None) -> str:
    return "-" if n is None else f"{n:,}"


def text(figures: Mapping[str, Figure]) -> str:
    """Figures in one line."""
    return "; ".join(
        f"{name} {value if isinstance(value, str) else f'{value:,.6g}'}" for name, value in figures.items()
    )
