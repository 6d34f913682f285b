"""The row that every measurement ends in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Budget:
    """What a value may be."""

    direction: Literal["at most", "at least"]
    limit: float

    def holds(self, value: float) -> bool:
        return value <= self.limit if self.direction == "at most" else value >= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. `value` is None where it could not be measured here; `how` then says why."""

    name: str
    value: float | None
    unit: str
    budget: Budget | None = None
    peers: Mapping[str, float] = field(default_factory=dict[str, float])
    """The same figure of others, measured in the same run."""
    how: str
    judged: bool = True
    """False for a run at sizes that budgets are not made for."""

    @property
    def held(self) -> bool | None:
        """Whether the budget held; None where there is none, or nothing to compare with it."""
        if self.budget is None or self.value is None or not self.judged:
            return None
        return self.budget.holds(self.value)

    def to_json(self) -> dict[str, Any]:
        """The row as JSON types, figures rounded to four digits."""
        return {
            "name": self.name,
            "value": None if self.value is None else figure(self.value),
            "unit": self.unit,
            "budget": None if self.budget is None else {self.budget.direction: self.budget.limit},
            "peers": {name: figure(value) for name, value in self.peers.items()},
            "held": self.held,
            "how": self.how,
        }


def from_json(told: Mapping[str, Any]) -> Row:
    """The row that `to_json` told."""
    budget = [Budget(direction, limit) for direction, limit in (told["budget"] or {}).items()]
    return Row(
        name=told["name"],
        value=told["value"],
        unit=told["unit"],
        budget=budget[0] if budget else None,
        peers=told["peers"],
        how=told["how"],
        judged=told["held"] is not None,
    )


@dataclass(frozen=True, slots=True)
class Bench:
    """Measurements of one subject. `measure(tiny)` yields its rows; tiny: at sizes that only show that it runs."""

    name: str
    meaning: str
    measure: Callable[[bool], Iterator[Row]]


def figure(value: float) -> float:
    """Four significant digits: no measurement here carries more."""
    return float(f"{value:.4g}")


def text(value: float) -> str:
    """The same for people to read."""
    return f"{figure(value):,}".removesuffix(".0")


def progress(text: str) -> None:
    """Tell whoever waits what is being measured; standard output is for rows."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
