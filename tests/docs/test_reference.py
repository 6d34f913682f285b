"""What a user can type, set or catch stands in docs/reference, as the code has it."""

import re
from pathlib import Path

import pytest

from daskscope.cli import EXIT_CODES
from tests.docs import reference

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


@pytest.mark.parametrize("name", reference.PARTS)
def test_generated_parts_are_up_to_date(name: str) -> None:
    assert reference.page(name).read_text(encoding="utf-8") == reference.renewed(name), "run `make docs`"


def test_every_command_is_documented() -> None:
    text = reference.page("cli").read_text(encoding="utf-8")
    known = {"admin", "clusters", "computations", "demo", "events", "exceptions", "serve", "version"}
    assert set(re.findall(r"^## daskscope (\S+)$", text, re.M)) == known


def test_every_exit_code_is_documented() -> None:
    sentence = next(
        s for s in reference.page("cli").read_text(encoding="utf-8").split("\n\n") if s.startswith("Exit codes:")
    )
    assert {str(code) for code in EXIT_CODES.values()} | {"0", "1", "130"} == set(re.findall(r"\d+", sentence))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing
