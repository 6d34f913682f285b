"""A form that secrets have of themselves: where to look for it, and what it looks like there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from daskscope.privacy import values
from daskscope.privacy.values import Span


def shown(value: str) -> bool:
    return not values.is_placeholder(value)


@dataclass(frozen=True, slots=True)
class Form:
    """`pattern` is tried where `trigger` stands, `before` characters ahead of it; its group `secret`, or all of it, is
    what is masked if it is `good`. That is linear and cheap: to look for a plain text costs a tenth of a pattern.
    """

    trigger: str
    pattern: re.Pattern[str]
    before: int = 0
    good: Callable[[str], bool] = shown

    def spans(self, text: str) -> Iterator[Span]:
        """Where it stands in `text`, in order."""
        place, end = text.find(self.trigger), 0
        while place >= 0:
            if place >= self.before and place >= end:
                found = self.pattern.match(text, place - self.before)
                if found is not None:
                    end = found.end()
                    span = found.span("secret" if "secret" in self.pattern.groupindex else 0)
                    if self.good(text[slice(*span)]):
                        yield span
            place = text.find(self.trigger, max(place + 1, end))


def form(triggers: str, pattern: str, before: int = 0, good: Callable[[str], bool] = shown) -> tuple[Form, ...]:
    """One for each of the `triggers`, which blanks part."""
    compiled = re.compile(pattern)
    return tuple(Form(trigger, compiled, before, good) for trigger in triggers.split())
