"""docs/deploy.md names every choice with its default, and every target that it tells to make."""

import dataclasses
import json
import re
from pathlib import Path

from daskscope_infra.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")


def test_every_context_key_stands_there_with_its_default() -> None:
    told = dict(re.findall(rf"^\| `{PREFIX}([a-z-]+)` \| `([^`]*)` \|", PAGE, re.M))
    defaults = {key.replace("_", "-"): value for key, value in dataclasses.asdict(Settings()).items()}
    assert told == {k: v if isinstance(v, str) else json.dumps(v) for k, v in defaults.items()}


def test_every_target_is_in_the_makefile() -> None:
    told = set(re.findall(r"\bmake ([a-z]+)\b", PAGE))
    assert {"bootstrap", "deploy", "destroy"} <= told
    assert told <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
