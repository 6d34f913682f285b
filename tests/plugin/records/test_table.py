import json

from hypothesis import given
from hypothesis import strategies as st

from daskscope.records import CELL, SHOWN, Records

ROWS = [
    {"id": 2, "name": "etl", "memory": 3 << 30, "created": "2026-11-21T08:00:00.000Z", "states": {"memory": 5}},
    {"id": 11, "name": None, "memory": None, "created": None, "states": {}},
]


def test_they_are_a_list_of_dicts() -> None:
    records = Records(ROWS, columns=["id"], url="http://x/y")
    assert records == ROWS
    assert json.loads(json.dumps(records)) == ROWS
    assert records[0] is ROWS[0]
    assert [row["id"] for row in records] == [2, 11]


def test_a_slice_keeps_columns_and_page() -> None:
    part = Records(ROWS, columns=["id"], url="http://x/y")[1:]
    assert isinstance(part, Records)
    assert part == ROWS[1:]
    assert (part.columns, part.url) == (["id"], "http://x/y")


def test_text_is_aligned_and_readable() -> None:
    assert Records(ROWS).text().splitlines() == [
        "id  name    memory  created              states",
        " 2  etl   3.00 GiB  2026-11-21 08:00:00  memory=5",
        "11",
    ]


def test_values_within_a_value_can_be_told_apart() -> None:
    detail = {"timeout_s": 3600, "users": {"ann": None, "bob": 60}, "user": None, "scopes": ["read"]}
    (_, told) = Records([{"detail": detail}]).text().splitlines()
    assert told == "timeout_s=3600, users=(ann=none, bob=60), user=none, scopes=read"


def test_a_repr_says_what_it_leaves_out() -> None:
    records = Records([{"id": number, "text": "x" * 100} for number in range(SHOWN + 5)])
    lines = repr(records).splitlines()
    assert len(lines) == 1 + SHOWN + 1
    assert lines[-1] == "... 5 more"
    assert lines[1].endswith("…")
    assert len(lines[1].split()[1]) == CELL
    assert "5 more" in records._repr_html_()
    assert "more" not in repr(records[:SHOWN])
    assert "x" * 100 in records.text()


def test_empty() -> None:
    assert repr(Records()) == "[]"
    assert ">No records.<" in Records()._repr_html_()
    assert Records(columns=["id"]).text() == "id"


def test_html_is_escaped_and_without_script() -> None:
    page = Records([{"<b>": "<script>alert(1)</script>"}], url='http://x/"><script>')._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in Records([{"text": "\x1b[2Jgone\r\n\u202e"}]).text()


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(st.dictionaries(st.sampled_from(["id", "memory", "created", "text"]), _values), max_size=4))
def test_any_record_shows_on_one_line(rows: list[dict[str, object]]) -> None:
    records = Records(rows, columns=["id", "memory", "created", "text"])
    assert len(records.text().split("\n")) == len(rows) + 1
    assert records._repr_html_()
    assert repr(records)


def test_a_cost_is_in_its_currency() -> None:
    told = [("measured", "EUR"), ("estimated", "EUR"), ("measured", "USD"), ("measured", None)]
    rows = [{"cost": {"dollars": 2.5, "quality": quality, "currency": currency}} for quality, currency in told]
    assert [line.strip() for line in Records(rows).text().split("\n")[1:]] == [
        "2.50 EUR",
        "~2.50 EUR",
        "$2.50",
        "$2.50",
    ]


def test_a_sentence_on_all_of_them_stands_below():
    records = Records([{"id": 1}], note="One closed\x1b[2J for idling.")
    assert records.text().splitlines()[-1] == "One closed [2J for idling."
    assert "One closed" in records._repr_html_()
    assert records[:1].note is None, "of a part nobody said it"
