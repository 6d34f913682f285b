"""Every text of a message is scrubbed, also of fields that nobody has thought of yet."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, get_type_hints

import hypothesis
from hypothesis import given

from daskscope import testing, wire
from daskscope.collect.payloads import as_json
from daskscope.privacy.scrubber import Scrubber
from daskscope.privacy.walk import JSON_FIELDS, LEFT_ALONE, may_hold_text, text_fields
from tests.plugin.messages import messages
from tests.plugin.privacy.planted import Maker
from tests.plugin.rig import settings

PLAIN, HIDDEN = "postgresql://ada:hunter2@db", "postgresql://ada:[secret]@db"


def kinds() -> Iterator[type[Any]]:
    for name in wire.__all__:
        value: object = getattr(wire, name)
        if isinstance(value, type) and is_dataclass(value) and value is not wire.Reply:
            yield value


def texts_of(value: Any, place: str = "Message") -> Iterator[tuple[str, str]]:
    """Every text below `value`, keys of mappings too, with the field that it is in."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts_of(key, place)
            yield from texts_of(item, place)
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item, place)
    elif is_dataclass(value):
        for each in fields(value):
            yield from texts_of(getattr(value, each.name), f"{type(value).__name__}.{each.name}")


def planted_in(hint: Any) -> Any:
    """A value of a type with the text in all places that take any."""
    args: tuple[Any, ...] = getattr(hint, "__args__", ())
    origin = getattr(hint, "__origin__", None)
    if origin is Literal:
        return args[0]
    if origin is list:
        return [planted_in(args[0])]
    if origin is dict:
        return {planted_in(args[0]): planted_in(args[1])}
    if args:  # a union: the first that is no None
        return planted_in(args[0])
    if hint is str:
        return PLAIN
    if is_dataclass(hint):
        kind: Any = hint
        return kind(**{name: planted_in(inner) for name, inner in get_type_hints(kind).items()})
    return hint()


def test_every_text_of_a_message_is_scrubbed_but_those_of_a_list_with_reasons() -> None:
    message: wire.Message = planted_in(wire.Message)
    before = {place for place, text in texts_of(message) if PLAIN in text}
    assert len(before) > 60
    Scrubber(settings()).message(message)
    left = {place for place, text in texts_of(message) if PLAIN in text}
    assert left <= LEFT_ALONE.keys()
    assert not {place for place, text in texts_of(message) if "hunter2" in text} - LEFT_ALONE.keys()


def test_the_list_names_fields_that_there_are_and_that_have_texts() -> None:
    for place in LEFT_ALONE.keys() | JSON_FIELDS:
        kind, _, name = place.partition(".")
        assert may_hold_text(get_type_hints(getattr(wire, kind))[name]), place
        assert LEFT_ALONE.get(place, "JSON")


def test_every_field_is_a_number_or_scrubbed_or_on_the_list() -> None:
    assert len(list(kinds())) > 15
    for kind in kinds():
        scrubbed = {name for name, _ in text_fields(kind)}
        for name, hint in get_type_hints(kind).items():
            told = f"{kind.__name__}.{name}"
            assert (name in scrubbed) + (told in LEFT_ALONE) + (not may_hold_text(hint)) == 1, told


def test_a_kind_of_field_that_nobody_thought_of_is_scrubbed() -> None:
    @dataclass
    class Later:
        what: Any = field(default_factory=lambda: {"a": [PLAIN, {"b": (1, PLAIN)}]})

    message = testing.message(events=[Later()])  # type: ignore[list-item]
    Later.__annotations__["what"] = Any
    Scrubber(settings()).message(message)
    assert "hunter2" not in str(message)


def test_what_readers_keep_for_later_messages_is_never_changed() -> None:
    member, computation = (
        testing.member(name=PLAIN),
        wire.Computation(no=0, start_ms=0, code=[[wire.Frame(code="c", file=PLAIN, line=1)]]),
    )
    identity = testing.identity(tags={"dsn": PLAIN})
    kept = copy.deepcopy((member, computation, identity))
    message = testing.message(
        members=[member], computations=[computation], identity=identity, codes=[wire.Code(hash="c", text="x")]
    )
    Scrubber(settings()).message(message)
    assert (member, computation, identity) == kept
    assert message.members[0].name == HIDDEN
    assert message.identity is not None
    assert message.identity.tags == {"dsn": HIDDEN}


@hypothesis.settings(max_examples=25)
@given(messages)
def test_any_message_keeps_its_form(message: wire.Message) -> None:
    before = wire.encode(message)
    Scrubber(settings()).message(message)
    assert wire.decode(wire.encode(message)) == message
    assert len(json.loads(wire.encode(message))) == len(json.loads(before))


def test_under_a_secrets_name_a_payload_is_masked_whole_at_any_depth() -> None:
    payload: dict[str, Any] = {
        "password": "x", "n": 1, "auth": {"user": "ada", "hash": [1, 2]}, "token": 1234, "csrf": None,
        "deep": [{"DB_PASSWORD": "correct horse"}, {"name": "API_TOKEN", "value": "plain"}],
        "others": [{"name": "HOME", "value": "/root"}, {"key": "plain", "secret": "plain"}],
        "key": "sum-0123", "url": PLAIN, "cookie": True,
    }  # fmt: skip
    message = testing.message(events=[testing.event(detail=json.dumps(payload))])
    Scrubber(settings()).message(message)
    assert json.loads(message.events[0].detail) == {
        "password": "[secret]", "n": 1, "auth": "[secret]", "token": "[secret]", "csrf": None,
        "deep": [{"DB_PASSWORD": "[secret]"}, {"name": "API_TOKEN", "value": "[secret]"}],
        "others": [{"name": "HOME", "value": "/root"}, {"key": "[secret]", "secret": "[secret]"}],
        "key": "sum-0123", "url": HIDDEN, "cookie": True,
    }  # fmt: skip


def test_a_payload_without_a_secret_is_left_letter_by_letter() -> None:
    detail = '{"action":  "x", "keys": ["token-1"], "monkey": 1.50}'
    message = testing.message(events=[testing.event(detail=detail)])
    Scrubber(settings()).message(message)
    assert message.events[0].detail == detail


def test_a_tag_under_a_secrets_name_is_masked_and_one_beside_it_is_not() -> None:
    message = testing.message(identity=testing.identity(tags={"token": "plain", "team": "weather"}))
    Scrubber(settings()).message(message)
    assert message.identity is not None
    assert message.identity.tags == {"token": "[secret]", "team": "weather"}


def detail_of(scrubber: Scrubber, payload: object) -> Any:
    message = testing.message(events=[testing.event(detail=as_json(payload))])
    scrubber.message(message)
    return json.loads(message.events[0].detail)


def test_a_payload_that_was_cut_is_masked_by_its_names() -> None:
    payload = {"credentials": {"user": "u", "value": "plain"}, "db_password": {"a": "plain"}, "log": "words " * 2_000}
    found = detail_of(Scrubber(settings()), payload)
    assert (found["credentials"], found["db_password"]) == ("[secret]", "[secret]")
    assert found["log"].endswith("more characters)")


def test_lists_of_a_payload_are_masked_like_those_of_a_text() -> None:
    payload = {
        "passwords": ["plain"], "db": [["password", "plain"], ["user", "ada"]],
        "argv": ["job", "--token", "plain", "-v"], "secrets": {"mail": "plain", "n": 1}, "tokens": ["plain", "words"],
        "flags": ["--password", "--verbose"],
        "names": ["user", "password", "host"],
    }  # fmt: skip
    assert detail_of(Scrubber(settings()), payload) == {
        "passwords": ["[secret]"], "db": [["password", "[secret]"], ["user", "ada"]],
        "argv": ["job", "--token", "[secret]", "-v"], "secrets": {"mail": "[secret]", "n": 1},
        "tokens": ["plain", "words"], "flags": ["--password", "--verbose"], "names": ["user", "password", "host"],
    }  # fmt: skip


def test_numbers_of_a_payload_are_looked_at() -> None:
    card = int("".join(filter(str.isdecimal, Maker(9).card())))
    assert detail_of(Scrubber(settings()), {"card": card, "n": 12}) == {"card": "[secret]", "n": 12}
    assert detail_of(Scrubber(settings(scrub_patterns=(r"\b\d{9}\b",))), {"ssn": 123456789, "n": 12.5}) == {
        "ssn": "[secret]",
        "n": 12.5,
    }


def test_a_count_under_a_name_that_means_other_things_too_stays() -> None:
    payload = {"session": 5, "cookies": 12, "auth": 0.5, "token": 7}
    assert detail_of(Scrubber(settings()), payload) == {"session": 5, "cookies": 12, "auth": 0.5, "token": "[secret]"}


def test_tags_that_may_be_words_stay() -> None:
    tags = {"session": "spring-2024", "auth": "ldap", "credentials": "none"}
    made = Maker(2).token()
    message = testing.message(identity=testing.identity(tags={**tags, "oauth": made, "db_password": "plain"}))
    Scrubber(settings()).message(message)
    assert message.identity is not None
    assert message.identity.tags == {**tags, "oauth": "[secret]", "db_password": "[secret]"}


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def test_codes_hash_is_that_of_the_scrubbed_text_and_later_frames_follow() -> None:
    scrubber = Scrubber(settings())
    text, clean = 'password = "hunter2"\n', "x = 1\n"
    first = testing.message(codes=[wire.Code(hash="raw-1", text=text), wire.Code(hash="raw-2", text=clean)])
    scrubber.message(first)
    masked = 'password = "[secret]"\n'
    assert [(code.hash, code.text) for code in first.codes] == [(hash_of(masked), masked), (hash_of(clean), clean)]
    frames = [[wire.Frame(code=name, file="job.py", line=1) for name in ("raw-1", "raw-2", "raw-3")]]
    later = testing.message(computations=[wire.Computation(no=0, start_ms=0, code=frames)])
    scrubber.message(later)
    told = [frame.code for frame in later.computations[0].code[0]]
    assert told == [hash_of(masked), hash_of(clean), "raw-3"]


def test_pieces_of_code_that_differ_in_their_secrets_alone_are_one() -> None:
    scrubber = Scrubber(settings())
    message = testing.message(codes=[wire.Code(hash=f"raw-{n}", text=f'password = "hunter{n}"') for n in range(3)])
    scrubber.message(message)
    assert [code.text for code in message.codes] == ['password = "[secret]"']


def test_what_is_remembered_is_bounded() -> None:
    scrubber = Scrubber(settings())
    for n in range(20_000):
        scrubber.text(f"group-{n} of-{n}")
    assert len(scrubber._clean) <= 8_192
    assert len(scrubber._words._known) <= 8_192
