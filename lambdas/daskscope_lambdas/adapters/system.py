"""What every world takes from the machine it runs on."""

from __future__ import annotations

import time


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Epoch seconds."""
        return time.time()
