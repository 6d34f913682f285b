"""Which HTTP API this release speaks: what server and client tell each other of themselves."""

from __future__ import annotations

API = 1
"""Of the routes, parameters and records of docs/reference/http-api.md. It changes where a client would take an answer
for what it is not; what is merely new does not change it."""

VERSION_HEADER = "Daskscope-Version"
"""The release that answered."""
API_HEADER = "Daskscope-Api"
"""Its API."""
