"""A page in the user's browser, where there is one."""

from __future__ import annotations

import os
import sys
import webbrowser


def show(url: str, wanted: bool | None) -> bool:
    """Open it, if that is wanted; whether it was done."""
    return is_wanted(wanted) and webbrowser.open(url)


def is_wanted(said: bool | None) -> bool:
    """What was said, or whether there is a desktop in front of this process."""
    return said if said is not None else _has_desktop()


def _has_desktop() -> bool:
    """Not over SSH, nor in a job: what opens there is a browser of text, or nothing."""
    if not sys.stderr.isatty() or os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
