"""Any message that keeps to the format, for Hypothesis."""

from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from daskscope import wire

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ints = st.integers(-(2**63), 2**63 - 1)
small_dicts = st.dictionaries(texts, ints, max_size=3)

st.register_type_strategy(int, ints)
st.register_type_strategy(str, texts)
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))


def table(kind: type[Any], rows: int, **nested: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Columns of `rows` entries each, but for those given."""
    items: dict[str, st.SearchStrategy[Any]] = {}
    for name, hint in get_type_hints(kind).items():
        if name in nested:
            items[name] = nested[name]
        elif get_origin(hint) is list:
            items[name] = st.lists(st.from_type(get_args(hint)[0]), min_size=rows, max_size=rows)
        else:
            items[name] = st.from_type(hint)
    return st.builds(kind, **items)


def columns(rows: int) -> st.SearchStrategy[dict[str, list[int]]]:
    return st.dictionaries(texts, st.lists(ints, min_size=rows, max_size=rows), max_size=3)


def indexes(n: int, rows: int) -> st.SearchStrategy[list[int]]:
    """`rows` numbers in a list of `n`."""
    return st.lists(st.integers(0, n - 1), min_size=rows, max_size=rows)


def workers(rows: int) -> st.SearchStrategy[wire.Workers]:
    """With and without GPUs."""
    none = st.just(list[int]())
    return table(wire.Workers, rows) | table(wire.Workers, rows, gpu_pct=none, gpu_memory_mib=none)


def tasks(rows: int) -> st.SearchStrategy[wire.Tasks]:
    named = st.lists(texts, min_size=2, max_size=2)
    return table(wire.Tasks, rows, addresses=named, worker=indexes(2, rows))


def profile(rows: int) -> st.SearchStrategy[wire.Profile]:
    stacks = st.lists(st.integers(0, 2).flatmap(lambda depth: indexes(2, depth)), min_size=rows, max_size=rows)
    return table(wire.Profile, rows, frames=st.lists(texts, min_size=2, max_size=2), stack=stacks)


rows = st.integers(0, 3)
shared = st.none() | st.integers(0, 1)
messages = st.builds(
    wire.Message,
    v=st.just(wire.VERSION),
    workers=rows.flatmap(workers),
    groups=rows.flatmap(lambda n: table(wire.Groups, n, states=columns(n), action_us=columns(n))),
    computations=st.lists(st.from_type(wire.Computation), max_size=2),
    codes=st.lists(st.from_type(wire.Code), max_size=2),
    exceptions=st.lists(st.from_type(wire.ExceptionFamily), max_size=2),
    events=st.lists(st.from_type(wire.Event), max_size=2),
    members=st.lists(st.builds(wire.Member, environment=shared, hardware=shared), max_size=2),
    environments=st.lists(st.from_type(wire.Environment), min_size=2, max_size=2),
    hardware=st.lists(st.from_type(wire.Hardware), min_size=2, max_size=2),
    deaths=st.lists(st.from_type(wire.Death), max_size=2),
    spans=st.lists(st.from_type(wire.Span), max_size=2),
    metrics=rows.flatmap(lambda n: table(wire.Metrics, n)),
    tasks=rows.flatmap(tasks),
    logs=rows.flatmap(lambda n: table(wire.Logs, n)),
    profiles=st.lists(rows.flatmap(profile), max_size=2),
    lost=small_dicts,
    identity=st.none() | st.from_type(wire.Identity),
    totals=st.from_type(wire.Totals),
    itself=st.from_type(wire.Itself),
)
