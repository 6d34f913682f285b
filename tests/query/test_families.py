"""What makes two exceptions one family."""

from __future__ import annotations

import string
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope_query import engine

NUMBERS = st.one_of(
    st.integers(min_value=0).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=0, places=2).map(str),
    st.binary(min_size=4, max_size=20).map(bytes.hex),
    st.integers(min_value=0).map(hex),
)
NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=10)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
URLS = st.tuples(st.sampled_from(["tcp", "s3", "https"]), NAMES, st.integers(1, 65535)).map(
    lambda parts: f"{parts[0]}://{parts[1]}.example:{parts[2]}"
)
IDS = st.uuids().map(str)
WORDS = st.text(string.ascii_letters + string.digits + " _.,:/-", max_size=20)


def alike(*texts: str | None) -> list[str | None]:
    """What is left of each."""
    with closing(engine.cursor()) as cursor:
        rows = cursor.execute("SELECT family_text(unnest($texts::VARCHAR[]))", {"texts": list(texts)}).fetchall()
    return [text for (text,) in rows]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("no such column", "no such column"),
        ("ValueError('no such column x1')", "no such column x<n>"),
        ("ValueError(\"no column 'price' in frame\")", "no column <text> in frame"),
        ("FileNotFoundError(2, 'No such file or directory')", "No such file or directory"),
        ("[Errno 2] No such file: '/data/2026/x-1.parquet'", "[Errno <n>] No such file: <text>"),
        ("cannot read /data/2026/x-1.parquet, skipped", "cannot read <path>, skipped"),
        ("Timed out after 30.5 s, tcp://10.0.2.96:40001 gone", "Timed out after <n> s, <url> gone"),
        ("can't open \"a\", won't try 'b'", "can't open <text>, won't try <text>"),
        ("object at 0x7f33ab12, 1,024 of 1.5e-10, -5", "object at <n>, <n> of <n>, <n>"),
        ("task 5f0c9f2e-0000-4000-8000-000000000001 lost", "task <id> lost"),
        ("KilledWorker('sum-1', <WorkerState 'tcp://a:1'>, 3)", "KilledWorker(<text>, <WorkerState <text>>, <n>)"),
        ("n/a\n  or   so", "n/a or so"),
        ("", ""),
        (None, None),
    ],
)
def test_what_differs_from_case_to_case_is_left_out(text: str | None, left: str | None) -> None:
    assert alike(text) == [left]


@given(st.lists(st.tuples(NUMBERS, IDS, PATHS, URLS, WORDS), min_size=2, max_size=8))
@settings(max_examples=60)
def test_texts_of_one_template_are_one_family(varying: list[tuple[str, ...]]) -> None:
    template = "step {} of job {} read {} from {} as '{}', then failed"
    assert len(set(alike(*(template.format(*each) for each in varying)))) == 1


@given(st.lists(st.text(), min_size=1, max_size=20))
@settings(max_examples=60)
def test_any_text_has_a_family_without_numbers(texts: list[str]) -> None:
    storable = [text.encode("utf-8", "replace").decode() for text in texts if "\0" not in text]
    for text, left in zip(storable, alike(*storable), strict=True):
        assert left is not None
        assert not set(left) & set(string.digits), (text, left)


@given(st.lists(NAMES, min_size=2, max_size=6, unique=True))
def test_other_words_are_other_families(words: list[str]) -> None:
    texts = [f"cannot {word.upper()}" for word in words]
    assert len(set(alike(*texts))) == len(texts)
