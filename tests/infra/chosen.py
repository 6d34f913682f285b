"""A context in which every setting is other than it is by itself."""

CHOSEN: dict[str, object] = {
    "daskscope:name": "Chosen",
    "daskscope:architecture": "x86_64",
    "daskscope:python": "3.12",
    "daskscope:customer-key": True,
    "daskscope:remove-data": True,
    "daskscope:write-window-s": 0,
    "daskscope:log-days": 7,
    "daskscope:retention-days": {"samples": 400, "workers": 45, "clusters_daily": 800},
}
