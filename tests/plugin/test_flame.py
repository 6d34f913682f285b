"""Stacks as a tree of calls, and as a picture."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope.flame import LEAST, MOST_ROWS, ROW, WIDTH, Node, picture, tree
from daskscope.profile import Profile

STACKS = [
    (["main (job.py:1)", "load (job.py:7)"], 30, 3.0),
    (["main (job.py:1)"], 10, 1.0),
    (["idle"], 10, 1.0),
    (["main (job.py:1)", "load (job.py:7)", "read (io.py:3)"], 50, 5.0),
]


def test_each_call_stands_once_under_its_caller_with_what_it_spent_itself() -> None:
    root = tree("cluster 7", STACKS)
    main, idle = root["children"]
    (load,) = main["children"]
    (read,) = load["children"]
    assert (root["name"], root["count"], root["seconds"], root["self_seconds"]) == ("cluster 7", 100, 10.0, 0.0)
    assert (main["name"], main["file"], main["line"], main["count"], main["self_count"]) == (
        "main",
        "job.py",
        1,
        90,
        10,
    )
    assert (load["seconds"], load["self_seconds"]) == (8.0, 3.0)
    assert (read["name"], read["self_count"], read["children"]) == ("read", 50, [])
    assert (idle["name"], idle["file"], idle["line"]) == ("idle", None, None)


def boxes(svg: str) -> list[tuple[str, float, float, float]]:
    """Titles with left edge, top and width."""
    found = re.findall(r'<title>(.*?)</title><rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"', svg)
    return [(title, float(x), float(y), float(width)) for title, x, y, width in found]


def test_the_picture_is_as_wide_as_it_took_time_and_callers_stand_above() -> None:
    drawn = {title.partition(":")[0].partition(" (")[0]: rest for title, *rest in boxes(picture(tree("all", STACKS)))}
    assert drawn["all"] == [0, 0, WIDTH - 0.5]
    assert drawn["main"] == [0, ROW, round(0.9 * WIDTH - 0.5, 1)]
    assert drawn["load"] == [0, 2 * ROW, round(0.8 * WIDTH - 0.5, 1)]
    assert drawn["idle"] == [0.9 * WIDTH, ROW, round(0.1 * WIDTH - 0.5, 1)]
    assert "load (job.py:7): 8 s, 80.0 %" in picture(tree("all", STACKS))


def test_what_is_too_narrow_or_too_deep_is_not_drawn() -> None:
    deep = ([f"f{n} (a.py:{n})" for n in range(10 * MOST_ROWS)], 10_000, 10_000.0)
    narrow = (["narrow (a.py:1)"], 1, 1.0)
    svg = picture(tree("all", [deep, narrow]))
    assert len(boxes(svg)) == MOST_ROWS
    assert LEAST > WIDTH / 10_001
    assert "narrow" not in svg


def test_a_stack_deeper_than_python_s_own_is_drawn() -> None:
    assert picture(tree("all", [([f"f{n}" for n in range(5_000)], 1, 1.0)]))


def test_nothing_was_sampled() -> None:
    assert picture(tree("all", [])) == ""


def profile(*stacks: dict[str, Any]) -> Profile:
    return Profile(
        stacks, total={"count": 5, "seconds": 9.0}, cut={"count": 1, "seconds": 0.5}, name="cluster 7", url="http://x/7"
    )


def test_a_profile_shows_its_picture_and_what_is_not_in_it() -> None:
    found = profile({"prefix": "sum", "stack": ["main (job.py:1)"], "count": 4, "seconds": 8.0})
    assert [node["name"] for node in found.tree()["children"]] == ["sum"]
    page = found._repr_html_()
    assert "<svg" in page
    for told in ("8.0 of 9.0 s", "0.5 s in rare stacks that were left out", 'href="http://x/7"'):
        assert told in page
    assert repr(found).splitlines()[-2:] == ["8.0 of 9.0 s", "0.5 s in rare stacks that were left out"]
    assert "No samples." in profile()._repr_html_()


def test_users_that_are_kept_apart_are_the_outermost_frames() -> None:
    found = profile({"user": "ann", "stack": ["main"], "count": 1, "seconds": 1.0})
    assert found.folded() == "ann;main 1\n"
    assert found.columns == ["seconds", "count", "user", "stack"]


_stacks = st.tuples(st.lists(st.text(max_size=8), max_size=4), st.integers(0, 9), st.floats(0, 9))


@given(st.lists(_stacks, max_size=6))
@pytest.mark.parametrize("name", ["all"])
def test_a_node_is_what_it_spent_itself_and_its_children(name: str, stacks: list[tuple[list[str], int, float]]) -> None:
    waiting: list[Node] = [tree(name, stacks)]
    assert waiting[0]["count"] == sum(count for _, count, _ in stacks)
    while waiting:
        node = waiting.pop()
        assert node["count"] == node["self_count"] + sum(child["count"] for child in node["children"])
        waiting += node["children"]
    assert picture(tree(name, stacks)) is not None
