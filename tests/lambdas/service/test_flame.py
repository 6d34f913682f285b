import json
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from daskscope_lambdas.service import flame
from daskscope_lambdas.service.found import Record

STACKS = st.lists(
    st.tuples(
        st.sampled_from(["all", "mine"]),
        st.lists(st.sampled_from(["a (x.py:1)", "b (y.py:2)", "<lambda> (/a (b)/z.py:3)", "c"]), max_size=6),
        st.integers(0, 1000),
        st.integers(0, 10**9),
    ),
    max_size=40,
)


def nodes(trees: list[Record]) -> Iterator[Record]:
    for tree in trees:
        yield tree
        yield from nodes(tree["children"])


@given(stacks=STACKS, more=st.integers(0, 500))
def test_nothing_is_lost_in_a_tree(stacks: list[tuple[str, list[str], int, int]], more: int) -> None:
    mine = sum(count for root, _, count, _ in stacks if root == "mine")
    us = sum(us for root, _, _, us in stacks if root == "mine")
    found = flame.trees(stacks, {"mine": (mine + more, us + more)})
    by_name = {tree["name"]: tree for tree in found}
    assert by_name["mine"]["count"] == mine + more
    assert by_name.get("all", {"count": 0})["count"] == sum(count for root, _, count, _ in stacks if root == "all")
    for node in nodes(found):
        assert node["count"] == node["self_count"] + sum(child["count"] for child in node["children"])
        spent = node["self_seconds"] + sum(child["seconds"] for child in node["children"])
        assert abs(node["seconds"] - spent) < 1e-6 * max(1.0, node["seconds"])
        assert [child["seconds"] for child in node["children"] if child["name"] != flame.REST] == sorted(
            (child["seconds"] for child in node["children"] if child["name"] != flame.REST), reverse=True
        )


def test_a_call_stands_once_under_its_caller() -> None:
    (tree,) = flame.trees(
        [
            ("all", ["main (job.py:1)", "load (job.py:7)"], 3, 30_000),
            ("all", ["main (job.py:1)"], 1, 10_000),
            ("all", ["load (job.py:7)"], 2, 20_000),
        ],
        {},
    )
    main, load = tree["children"]
    assert (main["name"], main["count"], main["self_count"], main["seconds"], main["self_seconds"]) == (
        "main", 4, 1, 0.04, 0.01,
    )  # fmt: skip
    assert [child["name"] for child in main["children"]] == [load["name"]] == ["load"]
    assert (load["count"], load["children"]) == (2, [])


def test_frames_as_python_has_them() -> None:
    texts = ["<lambda> (/home/me (old)/etl.py:42)", "<frozen importlib>", "f (x.py:no)"]
    (tree,) = flame.trees([("all", [text], 1, 1) for text in texts], {})
    assert {(node["name"], node["file"], node["line"]) for node in tree["children"]} == {
        ("<lambda>", "/home/me (old)/etl.py", 42), ("<frozen importlib>", None, None), ("f (x.py:no)", None, None),
    }  # fmt: skip


def test_a_tree_is_bounded_and_says_what_it_left_out() -> None:
    wide = [("all", ["main (m.py:1)", f"f{n} (m.py:{n})"], 2, 2_000 + n) for n in range(400)]
    light = [("all", ["main (m.py:1)", f"rare{n} (m.py:{n})"], 1, 1) for n in range(5_000)]
    deep = [("all", [f"d{n} (d.py:{n})" for n in range(2_000)], 7, 100_000)]
    (tree,) = flame.trees([*wide, *light, *deep], {})
    told = list(_flat(tree))
    assert len(told) <= flame.MAX_NODES + 3
    assert tree["count"] == 800 + 5_000 + 7
    (main,) = (node for node in told if node["name"] == "main")
    assert main["count"] == sum(child["count"] for child in main["children"]) == 5_800
    assert main["children"][-1]["name"] == flame.REST
    deepest = [node for node in told if node["name"].startswith("d")][-1]
    assert [(child["name"], child["count"]) for child in deepest["children"]] == [(flame.REST, 7)]


def test_a_tree_is_no_deeper_than_a_reader_of_json_goes() -> None:
    deep = [f"d{n} (d.py:{n})" for n in range(3_000)]
    found = flame.trees([("all", deep, 7, 100_000), ("all", deep[: flame.MAX_DEPTH], 1, 5)], {})
    assert json.loads(json.dumps(found)) == found
    told = list(nodes(found))
    assert len(told) == 1 + flame.MAX_DEPTH + 1
    assert [(node["name"], node["count"], node["self_count"]) for node in told[-2:]] == [
        ("d199", 8, 1),
        ("(rest)", 7, 7),
    ]


def test_a_line_of_more_digits_than_a_file_has_lines_is_none() -> None:
    (tree,) = flame.trees([("all", [f"f (x.py:{'9' * 5_000})"], 1, 1)], {})
    (node,) = tree["children"]
    assert (node["file"], node["line"]) == (None, None)


def _flat(tree: Record) -> Iterator[Record]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node["children"]
