from typing import Any

from daskscope_lambdas.web.run_report.calls import MAX_CALLS, outline


def node(name: str, seconds: float, *children: dict[str, Any]) -> dict[str, Any]:
    of_children = sum(child["seconds"] for child in children)
    return {
        "name": name, "file": f"{name}.py", "line": 7, "count": 1, "seconds": seconds, "self_count": 0,
        "self_seconds": seconds - of_children, "children": list(children),
    }  # fmt: skip


def test_calls_that_do_nothing_but_call_stand_in_one_line():
    (call,) = outline(node("all", 10, node("run", 10, node("apply", 9.95, node("read", 6), node("sum", 3.95)))))
    assert (call.names, call.place, call.share_pct) == (["run", "apply"], "apply.py:7", 100)
    assert [(each.names, each.share_pct) for each in call.callees] == [(["read"], 60), (["sum"], 40)]


def test_what_is_light_is_left_out():
    calls = outline(node("all", 1000, node("run", 995), node("rare", 5)))
    assert [call.names for call in calls] == [["run"]]


def test_of_many_calls_the_heaviest_are_shown_under_their_callers():
    leaves = [node(f"leaf-{n}", 100 + n) for n in range(60)]
    (call,) = outline(node("all", 8000, node("run", 8000, *leaves)))
    assert len(call.callees) == MAX_CALLS - 1
    assert {each.names[0] for each in call.callees} == {f"leaf-{n}" for n in range(60 - MAX_CALLS + 1, 60)}


def test_nothing_sampled_is_an_empty_outline():
    assert outline(node("all", 0)) == []
