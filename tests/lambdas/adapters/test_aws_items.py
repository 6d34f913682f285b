"""What stands in the table: few bytes, in the order of lists."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskscope import wire
from daskscope.compression import compress
from daskscope.testing import identity, message, workers
from daskscope_lambdas.adapters import aws
from daskscope_lambdas.adapters.aws.order import place, placed, sortable
from daskscope_lambdas.adapters.aws.packing import pack, unpack
from daskscope_lambdas.adapters.aws.rows import new_item, row
from daskscope_lambdas.env import AwsEnv
from daskscope_lambdas.ports import ClusterRow, identity_key
from daskscope_lambdas.service.check import MAX_ROW_BYTES
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.idle import IdlePolicy
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.testing import FakeClock

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.integers(0, 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | FLOATS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(FLOATS, FLOATS)
def test_texts_sort_like_their_numbers(a: float, b: float) -> None:
    assert (sortable(a) < sortable(b)) is (a < b)
    assert (sortable(a) == sortable(b)) is (a == b)


@given(FLOATS, NUMBERS, FLOATS, NUMBERS)
def test_places_sort_by_start_and_then_by_number(a: float, n: int, b: float, m: int) -> None:
    assert (place(a, n) < place(b, m)) is ((a, n) < (b, m))
    assert (place(a, n) < place(a, m)) is (n < m)


@given(FLOATS, NUMBERS)
def test_a_place_tells_what_it_was_made_of(started_at: float, number: int) -> None:
    assert placed(place(started_at, number)) == (started_at, number)


@settings(max_examples=30)
@given(st.dictionaries(st.text(), JSON))
def test_what_was_packed_is_unpacked(value: dict[str, object]) -> None:
    assert unpack(pack(value)) == value


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_json_is_not_packed(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        pack({"x": value})


@pytest.mark.parametrize("letters", [(0x20, 0x7F), (0x4E00, 0x9FFF), (0x1F300, 0x1FAFF)], ids=["ascii", "han", "emoji"])
def test_the_largest_row_fits_into_an_item(letters: tuple[int, int]) -> None:
    """Two messages' worth of text that no compression makes smaller."""
    any_letter = Random(7)
    text = "".join(chr(any_letter.randrange(*letters)) for _ in range(MAX_ROW_BYTES))
    fits = text.encode()[: 2 * MAX_ROW_BYTES].decode(errors="ignore")
    assert len(pack({"x": fits})) < 400_000 - 4_096


def test_what_was_packed_by_an_earlier_release_is_unpacked() -> None:
    assert unpack(bytes.fromhex(EARLIER)) == {"n_workers": 10, "action_us": {"compute": 5}, "tags": {"team": "weather"}}


EARLIER = "01438d3b7417c0cd33ad85673b5889509e9a589201b4b5b61600"


def test_an_item_of_an_earlier_release_is_read() -> None:
    made = ClusterRow(
        account="acme", id=7, uuid="u1", started_at=90.0, first_received_at=100.0, last_received_at=110.0, boot="b1",
        seq=3, made_at=109.5, next_s=10.0, identity={"name": "x"}, totals={"n_workers": 2},
    )  # fmt: skip
    item = {name: str(value) if isinstance(value, int | float) else value for name, value in new_item(made).items()}
    del item["uptime_s"]
    assert row(item) == replace(made, identity_of=identity_key("b1", 3))
    assert row(item | {"identity": pack({})}) == replace(made, identity={})
    assert row(item | {"uptime_s": "7.5", "skew_s": "-1e-05", "identity_of": "b0-0"}) == replace(
        made, uptime_s=7.5, skew_s=-1e-05, identity_of="b0-0", skew_of=identity_key("b1", 3)
    )


def size(item: Mapping[str, Any]) -> int:
    """Bytes as DynamoDB counts them: names, text and bytes as they are, numbers by their digits."""
    counts: dict[str, Callable[[Any], int]] = {
        "S": lambda text: len(text.encode()),
        "B": len,
        "N": lambda text: (len(re.sub(r"[-.]", "", text)) + 1) // 2 + 1,
    }
    return sum(len(name) + counts[kind](each) for name, value in item.items() for kind, each in value.items())


def test_an_item_of_a_busy_cluster_is_one_write_unit(clients: aws.Clients, aws_env: AwsEnv, clock: FakeClock) -> None:
    codes = CodeKeeper(aws.S3Objects(clients.s3, aws_env.bucket), aws.SsmVault(clients.ssm, aws_env.keys))
    registry = aws.DynamoClusters(clients.dynamodb, aws_env.table)
    idle = IdlePolicy(aws.DynamoPolicies(clients.dynamodb, aws_env.table), clock)
    ingest = Ingest(aws.SqsQueue(clients.sqs, aws_env.queue_url), registry, codes, idle, clock)
    busy = message(
        identity=identity(
            name="nightly-forecast",
            user="ada.lovelace",
            host="ip-10-0-31-27.eu-west-1.compute.internal",
            address="tls://10.0.31.27:8786",
            dashboard="http://10.0.31.27:8787/status",
            versions={
                "dask": "2026.8.0", "distributed": "2026.8.0", "msgpack": "1.1.0", "cloudpickle": "3.1.1",
                "tornado": "6.5", "toolz": "1.0.0", "numpy": "2.3.1", "pandas": "2.3.0", "pyarrow": "26.0.1",
                "lz4": "4.4.4",
            },
            tags={"group": "meteo", "cost-centre": "4711", "run": "2026-11-21T06"},
        ),
        workers=workers([f"tls://10.0.31.{n}:4{n}123" for n in range(10)]),
        totals=wire.Totals(
            n_workers=10, n_threads=40, n_clients=1, memory_bytes=21_487_182_158, managed_bytes=9_876_543_210,
            spilled_bytes=123_456_789, memory_limit_bytes=171_798_691_840, waiting=1234, queued=567, processing=80,
            in_memory=2345, erred=1, held_bytes=8_765_432_109, idle_timeout_us=3_600_000_000, n_computations=12,
            n_groups=345, n_tasks=123_456, n_tasks_erred=3, thread_us=144_000_123_456,
            action_us={"compute": 98_765_432_109, "transfer": 1_234_567_890, "disk-read": 12_345_678,
                       "disk-write": 2_345_678, "deserialize": 456_789},
            peak_memory_bytes=34_567_890_123, peak_workers=12,
        ),
        lost={"buffer": 17},
    )  # fmt: skip
    clock.advance(0.123456)
    ingest.take("acme-weather", *compress(wire.encode(busy)), round(clock.now() * 1e3) - 17)
    known = registry.get("acme-weather", 1)
    assert known.totals["n_workers"] == 10
    item = (
        clients.dynamodb()
        .get_item(TableName=aws_env.table, Key={"key": {"S": f"cluster/{known.uuid}"}})
        .get("Item", {})
    )
    assert size(item) <= 900  # 1,024 are a unit: some room for longer names
