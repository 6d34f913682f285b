"""The browser of these tests, and how it is started."""

from pathlib import Path

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
VIEWS = [
    {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    for width in (1400, 400)
    for scheme in ("light", "dark")
]
"""Wide and narrow, in the light and in the dark."""
