"""What browsers are told with each reply of the reports' origin. Standard library only: the infrastructure imports it.

A report is HTML that somebody made, with scripts without which it draws nothing: it is kept apart, not cleaned. Its
origin has nothing else, sets no cookies, and says on every reply that a page from it is of no origin at all, reaches
nothing, sends nothing and leads nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping

SEEN_S = 60
"""How long a short-lived address is good: no longer than that of a report that was deleted may be."""
PUBLIC_S = 30
"""For so long others may hold what an address leads to that has no end."""

_CONTENT = (
    # No origin of its own, so no cookies and no storage; no forms, windows, dialogs, downloads, nor the page around it.
    "sandbox allow-scripts",
    "default-src 'none'",
    # Dask's reports have their scripts and styles in them, and Bokeh's in them or from there.
    "script-src 'unsafe-inline' https://cdn.bokeh.org",
    "style-src 'unsafe-inline' https://cdn.bokeh.org",
    "img-src data: blob:",
    "font-src data:",
    "connect-src 'none'",
    "form-action 'none'",
    "base-uri 'none'",
)
_DENIED = (
    "accelerometer", "autoplay", "bluetooth", "camera", "clipboard-read", "clipboard-write", "display-capture",
    "encrypted-media", "fullscreen", "gamepad", "geolocation", "gyroscope", "hid", "identity-credentials-get",
    "idle-detection", "local-fonts", "magnetometer", "microphone", "midi", "payment", "picture-in-picture",
    "publickey-credentials-create", "publickey-credentials-get", "screen-wake-lock", "serial", "storage-access", "usb",
    "web-share", "window-management", "xr-spatial-tracking",
)  # fmt: skip

CONTENT_SECURITY_POLICY = "; ".join(_CONTENT)
PERMISSIONS_POLICY = ", ".join(f"{name}=()" for name in _DENIED)

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": PERMISSIONS_POLICY,
    "X-Robots-Tag": "noindex, nofollow",
}
"""On every reply, errors too; and one of those two besides."""
CACHED_SHORTLY = f"public, max-age={PUBLIC_S}"
NOT_CACHED = "private, no-store"
