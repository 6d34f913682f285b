"""What is made of a server's answer, whatever it is."""

import json
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskscope import outcome, wire
from daskscope.compression import SAMPLED
from daskscope.outcome import (
    MAX_ID,
    MAX_IDLE_S,
    MAX_PAGE,
    MAX_WAIT_S,
    MAX_WISH,
    MAX_WISHES,
    MIN_IDLE_S,
    Outcome,
    judge,
)

REPLY = {"id": 7, "url": "/acme/clusters/7", "next_s": 30, "wish": ["identity"]}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
REPLIES = st.fixed_dictionaries(dict.fromkeys(("id", "url", "next_s", "wish", "accepts", "idle_timeout_s"), ANYTHING))


def reply(**changes: object) -> wire.Reply:
    found = judge(200, None, json.dumps({**REPLY, **changes}).encode()).reply
    assert found is not None
    return found


@pytest.mark.parametrize("pace", [0, -1, "30", None, [], True, float("nan"), float("-inf"), 10**400])
def test_a_pace_that_is_none_leaves_it_to_the_plugin(pace: object) -> None:
    assert reply(next_s=pace).next_s is None


@pytest.mark.parametrize(
    ("said", "idle_s"),
    [(600, 600.0), (0.001, MIN_IDLE_S), (float("inf"), MAX_IDLE_S), (10**30, MAX_IDLE_S),
     *[(each, None) for each in (0, -1, None, "600", [], True, float("nan"), 10**400)]],
)  # fmt: skip
def test_an_idle_timeout_is_clamped_and_what_is_none_is_never(said: object, idle_s: float | None) -> None:
    assert reply(idle_timeout_s=said).idle_timeout_s == idle_s
    assert reply().idle_timeout_s is None


def test_wishes_that_are_no_texts_or_too_long_or_too_many_are_left_out() -> None:
    assert reply(wish=[1, None, "identity", {}, "x" * (MAX_WISH + 1)]).wish == ["identity"]
    assert reply(wish=["close"] * 10_000).wish == ["close"] * MAX_WISHES
    assert reply(wish={"close": 1}).wish == []


def test_of_the_encodings_that_a_server_takes_those_are_kept_that_are_known_here() -> None:
    assert reply().accepts == []
    assert reply(accepts=["br", SAMPLED[1], 7, None, ["x"], "daskscope-99-zstd"]).accepts == [SAMPLED[1]]
    assert reply(accepts=SAMPLED[0]).accepts == []
    assert len(reply(accepts=[SAMPLED[0]] * 5_000).accepts) <= MAX_WISHES


@pytest.mark.parametrize(
    "changes",
    [
        {"id": True}, {"id": -1}, {"id": MAX_ID + 1}, {"id": 7.0}, {"id": "7"}, {"id": None},
        {"url": "/x" * MAX_PAGE}, {"url": "/a b"}, {"url": "/\n"}, {"url": "/\u202e"}, {"url": None}, {"url": ["/x"]},
    ],
)  # fmt: skip
def test_without_a_number_and_a_page_it_is_no_reply_and_nothing_is_kept(changes: dict[str, Any]) -> None:
    found = judge(200, None, json.dumps({**REPLY, **changes}).encode())
    assert (found.verdict, found.reply) == ("again", None)


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("7", 7.0), ("0", 0.0), ("-5", 0.0), ("1e9", MAX_WAIT_S), ("inf", MAX_WAIT_S), ("nan", 0.0), ("soon", 0.0),
        ("", 0.0), (formatdate(4e9, usegmt=True), MAX_WAIT_S), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("Mon, 01 Jan 0001 00:00:00 GMT", 0.0), ("Mon, 01 Jan 0001 00:00:00 -0000", 0.0),
        ("Mon, 99 Jan 2026 99:00:00 GMT", 0.0), ("Fri, 31 Dec 9999 23:59:59 -2359", MAX_WAIT_S),
    ],
)  # fmt: skip
def test_retry_after_is_heeded_and_clamped(value: str, wait_s: float) -> None:
    assert judge(503, value, b"").wait_s == wait_s


def test_retry_after_as_a_date_counts_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome.time, "time", lambda: 1_800_000_000.0)
    assert judge(429, formatdate(1_800_000_042.0, usegmt=True), b"").wait_s == 42.0


@pytest.mark.parametrize("value", [None, "0", "junk", "-1"])
def test_a_bare_429_waits_a_minute(value: str | None) -> None:
    assert judge(429, value, b"").wait_s == outcome.BARE_429_S


def test_a_long_reason_is_cut() -> None:
    found = judge(400, None, json.dumps({"error": {"message": "x" * 10_000}}).encode())
    assert found.reason == "HTTP 400: " + "x" * 500 + "... (9500 more characters)"


def test_a_reason_is_one_line_without_the_token_however_it_is_written() -> None:
    said = r"bad token \u0064st_0123 or dks_other\n2026-01-01 - distributed - ERROR - forged\u001b[2J\u202e\r\u2028!"
    found = judge(400, None, b'{"error": {"message": "%s"}}' % said.encode(), token="dst_0123")
    assert found.reason == "HTTP 400: bad token [secret] or [secret] 2026-01-01 - distributed - ERROR - forged [2J !"


@pytest.mark.parametrize("message", [None, 7, ["dst_0123"], {"a": "dst_0123"}, "", " \n\u200b"])
def test_a_reason_that_is_no_text_is_none(message: object) -> None:
    body = json.dumps({"error": {"message": message}}).encode()
    assert judge(400, None, body, token="dst_0123").reason == "HTTP 400: no reason given"


@pytest.mark.parametrize("url", ["/c/1?dst_0123", "/c/dks_0123"])
def test_a_page_with_a_token_in_its_address_is_none(url: str) -> None:
    body = json.dumps({**REPLY, "url": url}).encode().replace(b"dst_", rb"\u0064st_")
    found = judge(200, None, body, token="dst_0123")
    assert (found.verdict, found.reply) == ("again", None)


@pytest.mark.parametrize("status", [400, 401, 403, 406, 415, 422, 501, 307])
def test_what_is_not_taken_after_the_sample_may_come_plain_before_that_is_final(status: int) -> None:
    for encoding in SAMPLED:
        found = judge(status, "300", b"", encoding)
        assert (found.verdict, found.wait_s) == ("plain", 0.0)
    for encoding in ("zstd", "gzip"):
        assert judge(status, None, b"", encoding) == judge(status, None, b"")
        assert judge(status, None, b"", encoding).verdict in ("refused", "denied", "again")


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_is_to_be_tried_again_later_is_no_matter_of_its_encoding(status: int) -> None:
    assert judge(status, "7", b"", SAMPLED[0]) == Outcome("again", f"HTTP {status}", wait_s=7.0)


@given(
    st.integers(100, 999),
    st.none() | st.text(),
    st.binary(max_size=64) | st.one_of(ANYTHING, REPLIES).map(lambda value: json.dumps(value).encode()),
)
def test_no_answer_makes_judging_raise_or_leave_its_bounds(status: int, retry_after: str | None, body: bytes) -> None:
    found = judge(status, retry_after, body)
    assert found.verdict in ("kept", "again", "refused", "denied")
    assert 0 <= found.wait_s <= MAX_WAIT_S
    if found.reply is not None:
        assert 0 <= found.reply.id <= MAX_ID
        assert found.reply.next_s is None or found.reply.next_s > 0
        assert all(type(text) is str for text in [found.reply.url, *found.reply.wish])
        assert set(found.reply.accepts) <= set(SAMPLED)
