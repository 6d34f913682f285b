"""The message format: what is encoded is decoded to the same, and whatever else comes in is refused by its place."""

import gzip
import hashlib
import json
import zlib
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskscope import testing, wire
from daskscope.compression import SAMPLED, compress, decompress
from daskscope.errors import BadMessage, UnknownVersion
from daskscope.wire.sample import sample
from tests.plugin.messages import messages

MIB = 1 << 20

many = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@many
@given(messages)
def test_any_message_encodes_and_decodes_to_the_same_through_all_compressions(message: wire.Message) -> None:
    plain = wire.encode(message)
    assert wire.decode(plain) == message
    assert wire.decode(decompress(*compress(plain))) == message
    assert wire.decode(decompress(*compress(plain, SAMPLED))) == message
    assert wire.decode(decompress(gzip.compress(plain), "gzip")) == message


def full_message() -> wire.Message:
    """Every field filled, in one row or entry each at least."""
    frame = wire.Frame(code="ab" * 16, file="job.py", line=7, line_in_code=3)
    return testing.message(
        reason="asked",
        computations=[wire.Computation(no=0, start_ms=1, stop_ms=2, code=[[frame]])],
        codes=[wire.Code(hash="ab" * 16, text="x.compute()")],
        exceptions=[testing.exception()],
        events=[testing.event(detail="{}")],
        groups=testing.groups({"no": 0, "span": "s", "dependencies": [1]}, {"no": 1}),
        totals=wire.Totals(
            n_workers=2, memory_bytes=4, idle_since_ms=5, idle_timeout_us=6, action_us={"compute": 7},
            desired_workers=3, adaptive_minimum=1, adaptive_maximum=9, scheduler_cpu_pct=4, scheduler_loop_ms=20,
        ),
        workers=testing.workers(["a", "b"], gpu_pct=[1, 2], gpu_memory_mib=[3, 4]),
        members=[testing.member(environment=0, hardware=0, left_ms=9)],
        environments=[testing.environment()],
        hardware=[wire.Hardware(cores=8, gpus=["T4"], lifecycle="spot")],
        spans=[testing.span(parent="p", collections="[]")],
        metrics=testing.metrics({}, {"span": None}),
        tasks=testing.tasks(3),
        deaths=[testing.death()],
        logs=testing.logs({"no": 0}, {"no": 1, "worker": None, "role": "scheduler"}),
        profiles=[testing.profile(cut=3)],
        itself=wire.Itself(cpu_us=5, n_messages=2),
        lost={"refused": 1},
    )  # fmt: skip


def test_defaults_are_left_out() -> None:
    message = wire.Message(v=1, cluster="c", boot="b", seq=3, made_at_ms=4, uptime_us=5, next_s=10)
    assert json.loads(wire.encode(message)) == {
        "v": 1, "cluster": "c", "boot": "b", "seq": 3, "made_at_ms": 4, "uptime_us": 5, "next_s": 10,
    }  # fmt: skip


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    message = testing.message(reason="caf\u00e9 \udcff!", lost={"\ud800": 1})
    decoded = wire.decode(wire.encode(message))
    assert decoded.reason == "caf\u00e9 ?!"
    assert decoded.lost == {"?": 1}


def _objects(value: Any, path: str = "$") -> list[tuple[str, dict[str, Any]]]:
    """Every JSON object that stands for one of the format's own types, with its path."""
    found: list[tuple[str, dict[str, Any]]] = []
    if isinstance(value, dict):
        found.append((path, value))
        for name, item in value.items():
            if name not in ("versions", "tags", "action_us", "states", "lost", "packages"):
                found += _objects(item, f"{path}.{name}")
    elif isinstance(value, list):
        for n, item in enumerate(value):
            found += _objects(item, f"{path}[{n}]")
    return found


def test_unknown_fields_are_ignored_at_every_level() -> None:
    message = full_message()
    tree = json.loads(wire.encode(message))
    places = _objects(tree)
    kinds = {path.partition("[")[0].rpartition(".")[2] for path, _ in places}
    assert kinds >= {"$", "identity", "totals", "workers", "groups", "computations", "codes", "exceptions", "events",
                     "itself", "members", "environments", "hardware", "spans", "metrics", "tasks", "deaths", "logs",
                     "profiles"}  # fmt: skip
    assert "$.computations[0].code[0][0]" in dict(places)
    for _, fields_of in places:
        fields_of["from_the_future"] = {"x": [1, None]}
    assert wire.decode(json.dumps(tree).encode()) == message


def _fields(kind: type[Any], path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Paths to every field of the format, within the full message."""
    found: list[tuple[str | int, ...]] = []
    for name, hint in get_type_hints(kind).items():
        here = (*path, name)
        found.append(here)
        inner: Any = hint
        while not is_dataclass(inner) and get_args(inner):
            if get_origin(inner) is list:
                here = (*here, 0)
            inner = get_args(inner)[0]
        if isinstance(inner, type) and is_dataclass(inner):
            found += _fields(inner, here)
    return found


def test_every_field_of_a_wrong_type_is_refused_with_its_place() -> None:
    good = wire.encode(full_message())
    paths = _fields(wire.Message)
    assert ("computations", 0, "code", 0, 0, "line") in paths
    for path in paths:
        tree = json.loads(good)
        at: Any = tree
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = [[[]]]  # of no field's type
        with pytest.raises(BadMessage) as caught:
            wire.decode(json.dumps(tree).encode())
        assert str(path[-1]) in caught.value.place, path
        assert caught.value.place.startswith("$"), path


@pytest.mark.parametrize("name", ["v", "cluster", "boot", "seq", "made_at_ms", "uptime_us", "next_s"])
def test_a_missing_field_is_named(name: str) -> None:
    tree = json.loads(wire.encode(testing.message()))
    del tree[name]
    with pytest.raises(BadMessage, match=name):
        wire.decode(json.dumps(tree).encode())


def test_a_later_version_may_have_nothing_in_common_but_its_number() -> None:
    with pytest.raises(UnknownVersion, match=r"version 3 is not one that this server can read .* Upgrade the server"):
        wire.decode(b'{"v": 3, "clusters": ["a"]}')


@pytest.mark.parametrize("version", [1, wire.VERSION, wire.VERSION + 1, 10**6])
def test_a_version_that_can_be_read_is_taken(version: int) -> None:
    told = replace(testing.message(), v=version)
    more = json.loads(wire.encode(told)) | {"weather": [{"sky": "blue"}], "mood": None}
    assert wire.decode(json.dumps(more).encode()) == told


@pytest.mark.parametrize("version", [0, -1])
def test_no_version_is_unknown(version: int) -> None:
    with pytest.raises(UnknownVersion, match=str(version)) as caught:
        wire.decode(wire.encode(replace(testing.message(), v=version)))
    assert caught.value.place == "$.v"


COLUMNS = [
    *(("workers", f.name) for f in fields(wire.Workers) if f.name != "address"),
    *(("metrics", f.name) for f in fields(wire.Metrics) if f.name != "span"),
    *(("logs", f.name) for f in fields(wire.Logs) if f.name != "no"),
    *(("tasks", name) for name in ("worker", "start_ms", "duration_us", "nbytes", "erred")),
    *(("profiles", name) for name in ("stack", "count")),
]
"""All but the first, which the others are measured by."""


@pytest.mark.parametrize(("part", "name"), COLUMNS)
def test_a_column_of_another_length_is_named(part: str, name: str) -> None:
    message = full_message()
    table = message.profiles[0] if part == "profiles" else getattr(message, part)
    getattr(table, name).append(getattr(table, name)[0])
    with pytest.raises(BadMessage, match=rf"Column {name} has \d entries where \w+ has \d") as caught:
        wire.decode(wire.encode(message))
    place = "profiles[0]" if part == "profiles" else part
    assert caught.value.place == f"$.{place}.{name}"


def test_only_a_column_that_no_worker_has_may_be_empty() -> None:
    message = full_message()
    message.workers.gpu_pct.clear()
    assert wire.decode(wire.encode(message)) == message
    message.workers.cpu_pct.clear()
    with pytest.raises(BadMessage, match="Column cpu_pct has 0 entries where address has 2"):
        wire.decode(wire.encode(message))


@pytest.mark.parametrize(
    ("place", "changes"),
    [
        ("$.tasks.worker", {"tasks": testing.tasks(1, worker=[2])}),
        ("$.tasks.worker", {"tasks": testing.tasks(1, worker=[-1])}),
        ("$.profiles[0].stack", {"profiles": [testing.profile(stack=[[0, 1], [3]])]}),
        ("$.members.environment", {"members": [testing.member(environment=0)]}),
        ("$.members.hardware", {"members": [testing.member(hardware=1)], "hardware": [wire.Hardware()]}),
    ],
)
def test_a_number_that_counts_in_no_list_is_refused(place: str, changes: dict[str, Any]) -> None:
    with pytest.raises(BadMessage, match="not within the list") as caught:
        wire.decode(wire.encode(testing.message(**changes)))
    assert caught.value.place == place


def test_a_nested_column_of_another_length_is_named() -> None:
    message = full_message()
    message.groups.states["memory"].pop()
    with pytest.raises(BadMessage, match=r"states\.memory has 1 entries where no has 2"):
        wire.decode(wire.encode(message))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[]", b"1", b'"x"', b"\xff\xfe", b"{", b"nan", b"Infinity",
        b"[" * 200_000, b'{"a":' * 200_000, b'{"identity":' * 200_000,
        b'{"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"v":1e400}', b'{"v":' + b"9" * 5000 + b"}", b'{"v":1,"v":"2"}',
    ],
    ids=lambda body: body[:12].decode("ascii", "replace"),
)  # fmt: skip
def test_hostile_json_is_a_bad_message(body: bytes) -> None:
    with pytest.raises(BadMessage):
        wire.decode(body)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
def test_a_number_that_is_none_is_a_bad_message(number: str) -> None:
    body = wire.encode(testing.message()).replace(b'"next_s":10.0', f'"next_s":{number}'.encode())
    assert number.encode() in body
    with pytest.raises(BadMessage):
        wire.decode(body)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
@pytest.mark.parametrize(
    "place", ["$.made_at_ms", "$.totals.memory_bytes", "$.lost", "$.workers.cpu_pct", "$.groups.states.memory"]
)
def test_an_integer_that_no_column_can_hold_is_a_bad_message(place: str, number: int) -> None:
    message = full_message()
    tree = json.loads(wire.encode(message))
    at: Any = tree
    for step in place.split(".")[1:-1]:
        at = at[step]
    last = place.rpartition(".")[2]
    if isinstance(at[last], list):
        at[last] = [number] * len(at[last])
    else:
        at[last] = {"refused": number} if last == "lost" else number
    with pytest.raises(BadMessage, match="64 bits") as caught:
        wire.decode(json.dumps(tree).encode())
    assert caught.value.place.startswith(place)


def test_digits_in_a_text_are_no_number() -> None:
    message = testing.message(reason="9" * 40, lost={"7" * 40: 1})
    assert wire.decode(wire.encode(message)) == message


def test_the_last_of_two_equal_keys_wins() -> None:
    body = wire.encode(testing.message()).replace(b'"seq":0', b'"seq":5,"seq":6')
    assert wire.decode(body).seq == 6


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=3), st.integers(0, 3)), min_size=1, max_size=6))
def test_any_mutation_decodes_or_is_a_bad_message(edits: list[tuple[int, bytes, int]]) -> None:
    for body, encoding in _FUZZED:
        mutated = bytearray(body)
        for at, inserted, removed in edits:
            at %= len(mutated) + 1
            mutated[at : at + removed] = inserted
        try:
            decoded = wire.decode(decompress(bytes(mutated), encoding))
        except BadMessage:
            continue
        assert isinstance(decoded, wire.Message)


_PLAIN = wire.encode(full_message())
_DEFLATED = zlib.compressobj(zdict=sample())
_FUZZED = [
    (_PLAIN, None),
    (gzip.compress(_PLAIN), "gzip"),
    (zstandard.compress(_PLAIN), "zstd"),
    compress(_PLAIN, SAMPLED),
    (_DEFLATED.compress(_PLAIN) + _DEFLATED.flush(), "daskscope-1-deflate"),
]


def test_nothing_but_the_format_is_encoded() -> None:
    with pytest.raises((TypeError, ValueError)):
        wire.encode(replace(testing.message(), reason=object()))
    with pytest.raises(ValueError, match="not JSON compliant"):
        wire.encode(replace(testing.message(), next_s=float("nan")))


def test_msgspec_itself_reads_a_message_as_the_format_says() -> None:
    """The decoder is no second description of the format: a plain JSON reader sees the same."""
    message = full_message()
    assert msgspec.convert(json.loads(wire.encode(message)), wire.Message) == message
    assert hashlib.sha256(wire.encode(message)).digest() == hashlib.sha256(wire.encode(message)).digest()
