"""Numbers as people say them, for sentences and pages."""

from __future__ import annotations

from datetime import UTC, datetime

_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_DURATIONS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))


def duration(seconds: float) -> str:
    """Two units at most: `2 h 14 min`, `42 s`, `310 ms`, `83 µs`; a negative one is none."""
    seconds = max(seconds, 0.0)
    if 0 < seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms" if seconds >= 0.0009995 else f"{seconds * 1e6:.3g} µs"
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 9.5 else f"{min(seconds, 59):.0f} s"
    for unit, name, part, part_name in _DURATIONS:
        if seconds >= unit:
            whole, rest = divmod(int(seconds), unit)
            return f"{whole:,} {name}" + (f" {rest // part} {part_name}" if rest // part else "")
    raise AssertionError(seconds)


def size(n_bytes: float) -> str:
    """Binary units, three digits: `18 GiB`, `1.4 MiB`, `0 bytes`."""
    value, step = float(n_bytes), 0
    while value >= 999.5 and step < len(_SIZES) - 1:
        value, step = value / 1024, step + 1
    return f"{value:.0f} {_SIZES[step]}" if step == 0 or value >= 99.5 else f"{value:.3g} {_SIZES[step]}"


def count(n: int, one: str, many: str = "") -> str:
    """`1 task`, `1,200 tasks`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def share(part: float, whole: float) -> str:
    """`61 %`; `<1 %` rather than a nought that is none; `–` of nothing."""
    if whole <= 0:
        return "–"
    percent = 100 * part / whole
    if 0 < percent < 1:
        return "<1 %"
    return f"{percent:.0f} %" if percent < 99 or part >= whole else "99 %"


def dollars(amount: float) -> str:
    """`$3.21`, `$0.0042`: two digits at least, for small clusters cost little and not nothing."""
    if amount == 0 or amount >= 0.1:
        return f"${amount:,.2f}"
    return f"${amount:.2g}" if amount >= 0.0001 else "<$0.0001"


def money(amount: float, currency: str) -> str:
    """`$3.21`; in another currency than US dollars `3.21 EUR`."""
    return dollars(amount) if currency == "USD" else f"{dollars(amount).replace('$', '')} {currency}"


def moment(value: datetime | str | float | None, seconds: bool = False) -> str:
    """`21 Nov 2026 08:00` in UTC, of ISO text or epoch seconds too."""
    if value is None:
        return "–"
    if isinstance(value, float | int):
        value = datetime.fromtimestamp(value, UTC)
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.astimezone(UTC).strftime("%d %b %Y %H:%M" + (":%S" if seconds else ""))
