"""What makes two exceptions one family: their texts, but for what differs from case to case."""

from __future__ import annotations

from functools import reduce

_VARYING = (
    # Dask's text is as a rule the exception's repr; its message, in quotes there, is not what varies.
    (r"""(?s)^[A-Za-z_][\w.]*\((?:-?[0-9]+, )?['"](.*)['"],?\)$""", r"\1"),
    (r"""(^|\W)(?:[bBfFrRuU]{0,2}'[^'\n]*')+""", r"\1<text>"),
    (r"""(^|\W)(?:[bBfFrRuU]{0,2}"[^"\n]*")+""", r"\1<text>"),
    (r"""[A-Za-z][A-Za-z0-9+.-]*://[^\s'"<>,;()\[\]]+""", "<url>"),
    (r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}", "<id>"),
    (r"""(^|[^\w/<>])(?:[A-Za-z]:\\|/)[^\s'"<>:,;()\[\]]+""", r"\1<path>"),
    (r"0[xX][0-9A-Fa-f]+|\b[0-9A-Fa-f]{8,}\b|[0-9]+", "<n>"),
    (r"(^|[\s(\[=,:])[-+]<n>", r"\1<n>"),
    (r"<n>(?:[.,:_]?<n>|[eE][-+]?<n>)+", "<n>"),
    (r"\s+", " "),
)
"""Patterns and what stands in their place, in this order. Nobody can tell a long number from an id in hex, so both are
numbers."""


def _sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_TEXT = reduce(lambda inner, pair: f"regexp_replace({inner}, {_sql(pair[0])}, {_sql(pair[1])}, 'g')", _VARYING, "text")

MACROS = f"""
CREATE MACRO family_text(text) AS trim({_TEXT});
CREATE MACRO family_id(origin, type, pattern) AS
    left(md5(concat_ws(chr(0), coalesce(origin, 'user'), type, pattern)), 16);
"""
"""`family_text`: the same for all texts of a family; null for null. `family_id`: of origin, type and that text."""
