"""Pages: Jinja templates with everything escaped, and files that the browser loads. Links are relative to `root`."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import Any

import jinja2

from daskscope_lambdas.service import words
from daskscope_lambdas.web import charts

STATIC = {"style.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"}
"""What may be asked for, and its type."""


def render(template: str, path: str, **context: Any) -> str:
    """The HTML of a page that stands at `path`: by it, links find their way back to the server's root."""
    return _environment().get_template(template).render(root=root(path), style_hash=_style_hash(), **context)


def root(path: str) -> str:
    """From a page to the server's root, wherever a proxy has put that: `../../` from `/local/analytics/x`."""
    return "../" * (path.count("/") - 1) or "./"


@cache
def static(name: str) -> str:
    """Text of a static file; KeyError for what is not one."""
    if name not in STATIC:
        raise KeyError(name)
    return resources.files(__name__).joinpath("static", name).read_text("utf-8")


@cache
def _style_hash() -> str:
    return hashlib.sha256(static("style.css").encode()).hexdigest()[:12]


@cache
def _environment() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.PackageLoader(__name__, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        name: getattr(words, name) for name in ("duration", "size", "share", "money", "count", "moment")
    }
    filters |= {"bar": charts.bar}
    found.filters.update(filters)
    return found
