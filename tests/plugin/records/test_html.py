"""What a notebook shows: no script, nothing of a user unescaped, and all of it under one class."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.profile import Profile
from daskscope.records import SHOWN, Comparison, Record, Records

BAD = "<script>alert(1)</script>\"'&\x1b[2J"
SUM = {"count": 4, "seconds": 1.0}


def profile(*stacks: dict[str, Any]) -> Profile:
    return Profile(stacks, total=SUM, cut={"count": 0, "seconds": 0.0}, name=BAD, url=None)


SHOWN_THINGS = [
    Records([{BAD: BAD, "seconds": {BAD: 2.0}, "days": [{"day": BAD, "count": 3}]}], url=f"http://x/{BAD}"),
    Record({BAD: BAD, "answers": {"finished": {"sentence": BAD}}, "code": [{"text": f"{BAD}\n{BAD}", "file": BAD}],
            "groups": [{BAD: BAD}]}, url=f"http://x/{BAD}"),
    Comparison({"kind": BAD, "items": [{"id": 1, "name": BAD}, {"id": 2, "name": BAD}],
                "differs": [{"what": BAD, "name": BAD, "values": [BAD, None]}]}),
    profile({"prefix": None, "stack": [f"{BAD} ({BAD}:7)", BAD], "count": 4, "seconds": 1.0}),
]  # fmt: skip


@pytest.mark.parametrize("thing", SHOWN_THINGS, ids=lambda thing: type(thing).__name__)
def test_no_script_no_escape_and_no_tag_of_a_users(thing: Any) -> None:
    page = thing._repr_html_()
    assert "<script" not in page.lower()
    assert "&lt;script&gt;" in page
    assert not re.search(r"\son\w+=|javascript:|\x1b", page)
    assert "\x1b" not in repr(thing)


@pytest.mark.parametrize("thing", SHOWN_THINGS, ids=lambda thing: type(thing).__name__)
def test_nothing_is_styled_but_what_is_ours(thing: Any) -> None:
    page = thing._repr_html_()
    style, rest = re.findall(r"<style>(.*?)</style>(.*)", page, re.DOTALL)[0]
    selectors = re.findall(r"(?:^|[{}])([^{}@]+)\{", style)
    assert selectors
    assert all(each.strip().startswith(".daskscope-shown") for many in selectors for each in many.split(","))
    assert rest.startswith('<div class="daskscope-shown">')
    assert rest.endswith("</div>")


def test_numbers_stand_to_the_right_with_their_unit() -> None:
    page = Records([{"name": "etl", "memory": 3 << 30, "duration": 90.0, "cost": {"dollars": 2.5}}])._repr_html_()
    assert '<td class="n">3.00 GiB</td>' in page
    assert '<td class="n">90.00 s</td>' in page
    assert '<td class="n">~$2.50</td>' in page
    assert "<td>etl</td>" in page


def test_time_by_action_is_drawn_to_one_scale() -> None:
    page = Records([{"seconds": {"compute": 3.0, "transfer": 1.0}}, {"seconds": {"compute": 2.0}}])._repr_html_()
    widths = [float(width) for width in re.findall(r'<rect class="\w+" x="[\d.]+" width="([\d.]+)"', page)]
    assert widths == [90.0, 30.0, 60.0]
    assert "<title>transfer 1 s</title>" in page


def test_the_days_of_a_family_are_columns() -> None:
    days = [{"day": "2026-11-20", "count": 0}, {"day": "2026-11-21", "count": 8}]
    page = Records([{"days": days}])._repr_html_()
    assert re.findall(r'height="([\d.]+)"><title>(.*?)</title>', page) == [
        ("1.0", "2026-11-20: 0"),
        ("10.0", "2026-11-21: 8"),
    ]


def test_it_says_what_it_does_not_show() -> None:
    page = Records([{"id": n} for n in range(SHOWN + 5)])._repr_html_()
    assert page.count("<tr>") == SHOWN + 1
    assert "... 5 more" in page


ANSWERS = {name: {"sentence": f"About {name}."} for name in ("finished", "exceptions", "cost", "time", "running")}


def test_a_cluster_shows_its_answers_first() -> None:
    cluster = Record({"id": 7, "memory": 1 << 30, "answers": ANSWERS, "completeness": {"sentence": "Complete."}})
    lines = repr(cluster).splitlines()
    assert lines[:2] == ["Did it finish? About finished.", "What failed? About exceptions."]
    assert lines[5] == "Is all of it here? Complete."
    assert lines[7:] == ["id      7", "memory  1.00 GiB"]
    page = cluster._repr_html_()
    assert page.index("About running.") < page.index("<details>") < page.index("1.00 GiB")
    assert cluster == {"id": 7, "memory": 1 << 30, "answers": ANSWERS, "completeness": {"sentence": "Complete."}}


def test_code_keeps_its_lines() -> None:
    computation = Record({"id": "c", "code": [{"text": "a = 1\nb = a.sum()", "file": "job.py", "line": 12}]})
    assert repr(computation).splitlines()[-3:] == ["job.py:12", "    a = 1", "    b = a.sum()"]
    assert "<pre>a = 1\nb = a.sum()</pre>" in computation._repr_html_()


def test_a_comparison_has_a_column_for_each_with_units() -> None:
    compared = Comparison(
        {
            "items": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
            "measures": [{"name": "peak", "unit": "bytes", "values": [1 << 30, 2 << 30]}],
            "groups": [{"prefix": "sum", "seconds": [1.0, 3.0], "share": 0.5}],
        }
    )
    told = repr(compared)
    assert "name         a         b\npeak  1.00 GiB  2.00 GiB" in told
    assert "prefix  a seconds  b seconds  share\nsum             1          3   50 %" in told


def test_compared_of_one_name_are_told_apart_by_their_numbers() -> None:
    compared = Comparison({"items": [{"id": 1, "name": "a"}, {"id": 2, "name": "a"}],
                           "seconds": [{"action": "compute", "values": [1.0, 2.0]}]})  # fmt: skip
    assert "action   1  2" in repr(compared)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_keys = st.sampled_from(["id", "memory", "created", "seconds", "days", "cost", "code", "duration", "share", "answers"])


@given(st.lists(st.dictionaries(_keys, _values), max_size=3))
def test_whatever_json_holds_is_shown(rows: list[dict[str, Any]]) -> None:
    for thing in (Records(rows), *map(Record, rows)):
        assert "<script" not in thing._repr_html_()
        assert repr(thing) is not None
