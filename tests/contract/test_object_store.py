from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskscope_lambdas.ports import Missing, ObjectStore, StoreError, Taken
from daskscope_lambdas.testing import race
from daskscope_lambdas.wiring import Adapters

NO_KEYS = [
    "",
    "/",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "../a",
    "a/..",
    "a/./b",
    "a/../../b",
    "a b",
    "ä",
    "a\\b",
    "a~",
    "a\n",
    "a\0b",
]


@pytest.mark.parametrize("body", [b"", b"text", bytes(range(256)) * 300], ids=["empty", "text", "binary"])
def test_what_was_put_is_got(object_store: ObjectStore, body: bytes) -> None:
    object_store.put_new("open/samples/day=2026-11-21/0.parquet", body)
    assert object_store.get("open/samples/day=2026-11-21/0.parquet") == body


@pytest.mark.parametrize("key", ["a", "a/b", "a/b/c", "a/bc", "b"])
def test_a_key_that_is_not_there_is_missing(object_store: ObjectStore, key: str) -> None:
    object_store.put_new("a/b/cd", b"x")
    with pytest.raises(Missing):
        object_store.get(key)


def test_what_lies_under_an_object_is_missing(object_store: ObjectStore) -> None:
    object_store.put_new("a", b"x")
    with pytest.raises(Missing):
        object_store.get("a/b")
    object_store.delete("a/b")
    assert list(object_store.list("a/")) == []


def test_a_taken_key_keeps_what_it_holds(object_store: ObjectStore) -> None:
    object_store.put_new("a/b", b"first")
    with pytest.raises(Taken):
        object_store.put_new("a/b", b"second")
    assert object_store.get("a/b") == b"first"


def test_one_of_many_racing_writers_wins(connect_again: Callable[[], Adapters], object_store: ObjectStore) -> None:
    stores = [connect_again().objects for _ in range(32)]
    outcomes = race(32, lambda n: stores[n].put_new("open/x/race", b"%d" % n))
    winners = [n for n, outcome in enumerate(outcomes) if outcome is None]
    assert len(winners) == 1
    assert sum(isinstance(outcome, Taken) for outcome in outcomes) == 31
    assert object_store.get("open/x/race") == b"%d" % winners[0]
    assert list(object_store.list("")) == ["open/x/race"]


def test_many_writers_of_different_keys_do_not_meet(connect_again: Callable[[], Adapters]) -> None:
    stores = [connect_again().objects for _ in range(32)]
    assert race(32, lambda n: stores[n].put_new(f"a/b{n % 4}/c/{n:02}", b"%d" % n)) == [None] * 32
    assert sorted(stores[0].list("a/")) == sorted(f"a/b{n % 4}/c/{n:02}" for n in range(32))


def test_a_prefix_is_text_and_not_a_folder(object_store: ObjectStore) -> None:
    for key in ("day=1/a", "day=10/a", "day=1x", "day=2/a", "other"):
        object_store.put_new(key, b"")
    assert list(object_store.list("day=1")) == ["day=1/a", "day=10/a", "day=1x"]
    assert list(object_store.list("day=1/")) == ["day=1/a"]
    assert list(object_store.list("day=1/a")) == ["day=1/a"]
    assert list(object_store.list("day=1/b")) == []
    assert list(object_store.list("nothing/here")) == []


def test_the_order_is_that_of_whole_keys(object_store: ObjectStore) -> None:
    # '-' and '.' sort before '/', digits and letters after it.
    keys = ["a-b", "a.b/c", "a/b", "a/b.c", "a0", "a=/x", "aA", "a_/x", "aa/b", "b"]
    for key in reversed(keys):
        object_store.put_new(key, b"")
    assert list(object_store.list("")) == keys == sorted(keys)


def test_all_of_many_are_listed(object_store: ObjectStore) -> None:
    keys = [f"many/{n:04}" for n in range(1100)]  # S3 answers 1,000 at a time
    for key in keys:
        object_store.put_new(key, b"")
    assert list(object_store.list("many/")) == keys


def test_an_object_that_goes_while_they_are_listed_disturbs_nothing(object_store: ObjectStore) -> None:
    for n in range(4):
        object_store.put_new(f"a/{n}/x", b"")
    listed: list[str] = []
    for key in object_store.list("a/"):
        object_store.delete("a/3/x")
        listed.append(key)
    assert listed[:3] == ["a/0/x", "a/1/x", "a/2/x"]


def test_delete_frees_the_key_and_is_quiet_about_nothing(object_store: ObjectStore) -> None:
    object_store.put_new("a/b", b"old")
    object_store.delete("a/b")
    object_store.delete("a/b")
    object_store.delete("never/there")
    with pytest.raises(Missing):
        object_store.get("a/b")
    assert list(object_store.list("")) == []
    object_store.put_new("a/b", b"new")
    assert object_store.get("a/b") == b"new"


def test_delete_takes_the_object_alone(object_store: ObjectStore) -> None:
    object_store.put_new("a/b", b"x")
    object_store.put_new("a/bc", b"y")
    object_store.delete("a")
    object_store.delete("a/b")
    assert list(object_store.list("")) == ["a/bc"]


@pytest.mark.parametrize("key", NO_KEYS)
def test_what_is_no_key_is_refused(object_store: ObjectStore, key: str) -> None:
    for call in (object_store.get, object_store.delete, lambda k: object_store.put_new(k, b"")):
        with pytest.raises(ValueError, match="no object key"):
            call(key)


@pytest.mark.parametrize("prefix", ["/", "../", "a/../", "a//", "a b", "~", "./", "\0"])
def test_what_no_key_starts_with_is_refused_at_once(object_store: ObjectStore, prefix: str) -> None:
    with pytest.raises(ValueError, match="no start of an object key"):
        object_store.list(prefix)


def test_names_with_dots_are_names(object_store: ObjectStore) -> None:
    for key in (".a", "..a", "a..", "x/...", "x/.hidden"):
        object_store.put_new(key, key.encode())
        assert object_store.get(key) == key.encode()
    assert list(object_store.list("x/.")) == ["x/...", "x/.hidden"]
    assert list(object_store.list("..")) == ["..a"]


KEYS = st.lists(st.text("ab.-=0", min_size=1, max_size=2), min_size=1, max_size=3).map("/".join)
STEPS = st.lists(st.tuples(st.sampled_from(["put", "get", "delete", "list"]), KEYS, st.binary(max_size=3)), max_size=40)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_it_does_what_a_dict_would(object_store: ObjectStore, steps: list[tuple[str, str, bytes]]) -> None:
    for key in list(object_store.list("")):
        object_store.delete(key)
    model: dict[str, bytes] = {}
    for act, key, body in steps:
        if any(part in (".", "..") for part in key.split("/")):
            continue
        if act == "put":
            # Where a key is or was another one's folder, a refusal is allowed, a wrong answer is not.
            try:
                object_store.put_new(key, body)
            except Taken:
                assert key in model
            except StoreError:
                assert key not in model
            else:
                assert key not in model
                model[key] = body
        elif act == "get":
            try:
                assert object_store.get(key) == model[key]
            except Missing:
                assert key not in model
        elif act == "delete":
            object_store.delete(key)
            model.pop(key, None)
        assert list(object_store.list(key[:2])) == sorted(k for k in model if k.startswith(key[:2]))
    assert {key: object_store.get(key) for key in object_store.list("")} == model
