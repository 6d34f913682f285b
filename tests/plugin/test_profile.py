import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daskscope.profile import Profile

STACKS = [
    {"prefix": None, "stack": ["main (job.py:1)", "load (job.py:7)"], "count": 30, "seconds": 0.3},
    {"prefix": None, "stack": ["main (job.py:1)", "<lambda> (C:\\code (old)\\a;b.py:9)"], "count": 10, "seconds": 0.1},
    {"prefix": None, "stack": ["no place"], "count": 1, "seconds": 0.01},
]


def profile(*stacks: dict[str, Any]) -> Profile:
    nothing = {"count": 0, "seconds": 0.0}
    return Profile(stacks, total=nothing, cut=nothing, name="cluster 7", url=None)


def test_speedscope_has_each_frame_once_and_each_stack_with_its_time(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    file = profile(*STACKS).to_speedscope(path)
    assert json.loads(path.read_text()) == file
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert file["shared"]["frames"] == [
        {"name": "main", "file": "job.py", "line": 1},
        {"name": "load", "file": "job.py", "line": 7},
        {"name": "<lambda>", "file": "C:\\code (old)\\a;b.py", "line": 9},
        {"name": "no place"},
    ]
    (only,) = file["profiles"]
    assert (only["type"], only["unit"], only["startValue"]) == ("sampled", "seconds", 0)
    assert only["samples"] == [[0, 1], [0, 2], [3]]
    assert only["weights"] == [0.3, 0.1, 0.01]
    assert only["endValue"] == sum(only["weights"])


def test_prefixes_that_are_apart_are_the_outermost_frames() -> None:
    file = profile(*({**STACKS[0], "prefix": name} for name in ("sum", "read"))).to_speedscope()
    assert file["profiles"][0]["samples"] == [[0, 1, 2], [3, 1, 2]]
    assert file["shared"]["frames"][3] == {"name": "read"}


def test_folded_is_a_line_for_each_stack() -> None:
    assert profile(*STACKS).folded() == (
        "main (job.py:1);load (job.py:7) 30\nmain (job.py:1);<lambda> (C:\\code (old)\\a:b.py:9) 10\nno place 1\n"
    )


def test_nothing_was_sampled() -> None:
    assert profile().folded() == ""
    (only,) = profile().to_speedscope()["profiles"]
    assert (only["samples"], only["weights"], only["endValue"]) == ([], [], 0)


def test_it_is_a_list_that_shows_well() -> None:
    found = profile(*STACKS)
    assert found == STACKS
    assert found.text().splitlines()[0].split() == ["seconds", "count", "prefix", "stack"]
    assert found[1:] == STACKS[1:]


frames = st.text(max_size=20) | st.builds("{} ({}:{})".format, st.text(), st.text(), st.integers())


@given(st.lists(st.lists(frames, min_size=1, max_size=4), max_size=4))
def test_any_frames_make_a_file_of_the_format(stacks: list[list[str]]) -> None:
    found = profile(*({"prefix": None, "stack": stack, "count": 2, "seconds": 1.0} for stack in stacks))
    file = json.loads(json.dumps(found.to_speedscope()))
    (only,) = file["profiles"]
    assert len(only["samples"]) == len(only["weights"]) == len(stacks)
    shared = file["shared"]["frames"]
    assert all(0 <= index < len(shared) for sample in only["samples"] for index in sample)
    assert all(set(frame) in ({"name"}, {"name", "file", "line"}) for frame in shared)
    assert all(isinstance(frame.get("line", 0), int) for frame in shared)
    assert len(found.folded().splitlines()) == len(stacks)
