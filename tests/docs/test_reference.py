"""What a user can type, set or catch stands in docs/reference, as the code has it."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from daskscope import wire
from daskscope.cli import EXIT_CODES, INTERRUPTED, UNREAD
from daskscope.cli.status import EXITS
from daskscope.options import OPTIONS, Option
from daskscope_query.tables import ORIGIN, TABLES
from tests.docs import reference
from tests.docs.always import ALWAYS
from tests.docs.collected import FROM_CLUSTERS

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


@pytest.mark.parametrize("name", reference.PARTS)
def test_generated_parts_are_up_to_date(name: str) -> None:
    assert reference.page(name).read_text(encoding="utf-8") == reference.renewed(name), "run `make docs`"


def test_every_command_is_documented() -> None:
    text = reference.page("cli").read_text(encoding="utf-8")
    known = {
        "admin",
        "audit",
        "clusters",
        "code",
        "compare",
        "completion",
        "computations",
        "config",
        "costs",
        "deaths",
        "demo",
        "doctor",
        "events",
        "exceptions",
        "export",
        "groups",
        "hardware",
        "import",
        "login",
        "logout",
        "logs",
        "members",
        "metrics",
        "open",
        "policy",
        "prefixes",
        "preview",
        "prices",
        "profile",
        "report",
        "samples",
        "serve",
        "show",
        "spans",
        "sql",
        "status",
        "stop",
        "tasks",
        "token",
        "user",
        "version",
        "whoami",
        "workers",
    }
    assert set(re.findall(r"^## daskscope (\S+)$", text, re.M)) == known


def test_every_exit_code_is_documented() -> None:
    sentence = next(
        s for s in reference.page("cli").read_text(encoding="utf-8").split("\n\n") if s.startswith("Exit codes:")
    )
    codes = {0, 1, INTERRUPTED, UNREAD, *EXIT_CODES.values()}
    assert {*map(str, codes)} == set(re.findall(r"\d+", sentence))
    told = re.findall(r"^\| (\d+) \| (\w+) \|", reference.page("cli").read_text(encoding="utf-8"), re.M)
    assert {state: int(code) for code, state in told} == EXITS


@pytest.mark.parametrize("option", [o for o in OPTIONS if o.governs], ids=lambda option: option.key)
def test_what_an_option_governs_is_there_and_can_be_turned_off(option: Option) -> None:
    for place in option.governs:
        table, _, column = place.partition(".")
        assert column in {"", *(c.name for c in TABLES[table].columns)}
    assert not option.parse(option.key, option.off)


def test_no_two_options_govern_the_same() -> None:
    governed = [place for option in OPTIONS for place in option.governs]
    assert len(set(governed)) == len(governed)
    assert not [place for place in governed if "." in place and place.partition(".")[0] in governed]


@pytest.mark.parametrize("option", [o for o in OPTIONS if o.governs], ids=lambda option: option.key)
def test_a_switch_says_what_for_and_where_it_stops(option: Option) -> None:
    assert option.purpose.endswith(".")
    assert option.stops.endswith(".")


def placed() -> list[str]:
    """`table.column` of all that stands somewhere on the page about privacy, under a switch or as always sent."""
    under = [place for option in OPTIONS for place in option.governs]
    whole = [f"{name}.{c.name}" for name in TABLES for c in TABLES[name].columns if name in under and c not in ORIGIN]
    columns = [place for place in under if "." in place]
    always = [f"{table}.{name}" for each in ALWAYS for table, names in each.columns.items() for name in names.split()]
    return whole + columns + always


def test_whatever_is_collected_has_its_one_place_under_a_switch_or_a_reason_why_it_is_always_sent() -> None:
    columns = [f"{table.name}.{c.name}" for table in FROM_CLUSTERS for c in table.columns if c not in ORIGIN]
    message = [
        f"{part}.{field.name}"
        for part, kind, table in (("identity", wire.Identity, "clusters"), ("totals", wire.Totals, "samples"))
        for field in fields(kind)
        if not {field.name, field.name.removesuffix("_ms")} & {c.name for c in TABLES[table].columns}
    ]
    assert sorted(placed()) == sorted([*(f".{c.name}" for c in ORIGIN), *columns, *message])


def test_the_dasks_that_are_supported_are_those_that_are_tried() -> None:
    oldest, newest = re.findall(r"distributed ([\d.]+) to ([\d.]+[\d])", reference.page("support").read_text())[0]
    assert f"distributed=={oldest}\n" in (ROOT / "constraints-oldest.txt").read_text()
    assert f"distributed=={newest}\n" in (ROOT / "constraints.txt").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


def test_every_reason_for_a_loss_is_documented() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "plugin" / "daskscope").rglob("*.py"))
    counted = r"lost\[|counts\[|unpacked\(|\.parcel\(|_give_up\(parcel, |_lose\(process, "
    made = set(re.findall(rf"""(?:{counted})"([a-z-]+)\"""", sources))
    known = {"buffer-full", "too-large", "failed", "parts", "log-lines", "unreadable-log-lines", "spans"}
    assert known <= made, "the pattern finds them"
    text = (ROOT / "docs" / "reference" / "message.md").read_text()
    section = text.partition("\n## lost\n")[2].partition("\n## ")[0]
    assert {reason for reason in made if not reason.startswith("unreadable-")} <= set(
        re.findall(r"`([a-z-]+)`", section)
    )
