"""Random texts that may stand in an address: digits and letters."""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable

Random = Callable[[int], bytes]
"""Gives so many random bytes."""

_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase


def base62(number: int, width: int) -> str:
    """`number` in `width` digits; leading noughts are digits too."""
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits = _DIGITS[digit] + digits
    return digits


def code(random: Random = secrets.token_bytes) -> str:
    """128 random bits, as 22 digits."""
    return base62(int.from_bytes(random(16)), 22)
