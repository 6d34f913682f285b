"""A run as one HTML file: readable without a script, without a network, for ever.

Nothing in it comes from elsewhere, and its own policy keeps it so: styles and the one script, which draws task rows,
are named by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from daskscope_lambdas import web
from daskscope_lambdas.service.run_report import Run
from daskscope_lambdas.web.run_report import sections, task_rows


def render(run: Run) -> str:
    """The HTML."""
    rows = None if run.tasks is None else task_rows.packed(run.tasks, run.start)
    script = _file("tasks.js") if rows is not None and rows.n else None
    context: dict[str, Any] = {
        **sections.of(run),
        "policy": policy(script),
        "style": style(),
        "script": script,
        "tasks": rows,
    }
    return web.render("run_report/page.html", "/", **context)


def policy(script: str | None) -> str:
    """What the file lets a browser do: nothing but what is in it."""
    runs = _source(script) if script else "'none'"
    return (
        f"default-src 'none'; style-src {_source(style())}; script-src {runs}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


@cache
def style() -> str:
    """That of all pages, and what a file besides needs. A policy that names styles by hash lets no element have its
    own, so each whole per cent has a class."""
    shares = "".join(f".calls .w{n}{{background-size:{n}% 100%}}" for n in range(1, 101))
    return web.static("style.css") + _file("style.css") + shares


def _source(text: str) -> str:
    """As a Content-Security-Policy names a piece of it that stands in the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _file(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text("utf-8")
