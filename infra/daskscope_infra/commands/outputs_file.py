"""The file of `deploy --outputs`: tokens and addresses for programs, as JSON that only this user can read."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from daskscope_infra.commands.first_tokens import FirstTokens

TOKENS = ("token", "ingest_token", "read_token", "user", "sign_in_url")
"""Null in the file of an account that had them already."""


def check(path: Path) -> None:
    """Raises ClickException unless a file can be written there."""
    if not os.access(path.absolute().parent, os.W_OK):
        raise click.ClickException(f"--outputs: no file can be written in {path.absolute().parent}.")


def write(path: Path, tenant: str, outputs: Mapping[str, str], tokens: FirstTokens | None) -> None:
    """Whole, or not at all. If no tokens were made, those of an earlier deploy stay in it: nothing else has them."""
    where = {"address": outputs["Address"], "account": tenant}
    kept: dict[str, Any]
    if tokens:
        kept = dict(zip(TOKENS, _values(tokens), strict=True))
    else:
        held = _read(path)
        same = all(held.get(key) == value for key, value in where.items())
        kept = {key: held.get(key) if same else None for key in TOKENS}
    # Made for its owner alone.
    descriptor, draft = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump({**where, **kept, "outputs": dict(outputs)}, file, indent=2)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _values(tokens: FirstTokens) -> tuple[str, ...]:
    return tokens.admin, tokens.reporting, tokens.reading, tokens.user, tokens.link


def _read(path: Path) -> dict[str, Any]:
    """Empty for a file that is missing, or none of ours."""
    try:
        held: Any = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}
