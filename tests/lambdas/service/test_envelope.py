from collections.abc import Sequence
from contextlib import suppress

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskscope import wire
from daskscope.compression import MAX_MESSAGE_BYTES, compress
from daskscope.errors import BadMessage, TooLarge
from daskscope.testing import START_MS, event, exception, groups, identity, message, workers
from daskscope_lambdas.ports import Queue
from daskscope_lambdas.service import envelope
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.envelope import Envelope, pack, unpack
from daskscope_lambdas.service.idle import IdlePolicy
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.wiring import LocalAdapters

ENVELOPE = Envelope(account="acme", cluster_id=1, received_at=1.0, message=message())

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COUNT = st.integers(0, (1 << 31) - 1)
MESSAGES = st.builds(
    message,
    seq=COUNT,
    next_s=st.floats(1e-9, 86_400),
    reason=st.none() | TEXT,
    identity=st.none() | st.builds(identity, name=TEXT, tags=st.dictionaries(TEXT, TEXT, max_size=3)),
    totals=st.builds(wire.Totals, n_tasks=COUNT, action_us=st.dictionaries(TEXT, COUNT, max_size=3)),
    workers=st.lists(TEXT, max_size=3).map(workers),
    groups=st.lists(st.fixed_dictionaries({"no": COUNT, "name": TEXT}), max_size=5).map(lambda some: groups(*some)),
    exceptions=st.lists(st.builds(exception, text=TEXT), max_size=3),
    events=st.lists(st.builds(event, topic=TEXT, worker=st.none() | TEXT), max_size=20),
    lost=st.dictionaries(TEXT, COUNT, max_size=3),
)


class Queued:
    """A queue that keeps what it was sent where the test sees it."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    def send(self, body: str) -> None:
        self.bodies.append(body)

    def delete(self, receipts: Sequence[str]) -> None:
        raise NotImplementedError


def ingest(queue: Queue, adapters: LocalAdapters) -> Ingest:
    return Ingest(
        queue,
        adapters.clusters,
        CodeKeeper(adapters.objects, adapters.vault),
        IdlePolicy(adapters.policies, adapters.clock),
        adapters.clock,
    )


def plain_bytes(posted: wire.Message) -> int:
    return len(msgspec.json.encode(Envelope(account="acme", cluster_id=1, received_at=1.0, message=posted)))


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(posted=MESSAGES, room=st.integers(-40, 40))
def test_what_is_taken_can_be_read(adapters: LocalAdapters, posted: wire.Message, room: int) -> None:
    """Near the limit, wherever that is."""
    queue = Queued()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(envelope, "MAX_PLAIN_BYTES", plain_bytes(posted) + room)
        with suppress(TooLarge):
            ingest(queue, adapters).take("acme", *compress(wire.encode(posted)))
        assert [unpack(body).message for body in queue.bodies] in ([posted], [])
        if room < 0:
            assert queue.bodies == []


def test_what_grows_over_the_limit_in_the_queue_is_refused_before_anything_is_kept(adapters: LocalAdapters) -> None:
    """Where the plugin leaves defaults out, the envelope writes them: 16 MiB as posted may be more as kept."""
    events = [wire.Event(no=n, at_ms=START_MS, topic="t" * 770, action="") for n in range(20_000)]
    posted = message(events=events)
    body, encoding = compress(wire.encode(posted))
    assert len(wire.encode(posted)) < MAX_MESSAGE_BYTES < plain_bytes(posted)
    queue = Queued()
    with pytest.raises(TooLarge, match="with its defaults"):
        ingest(queue, adapters).take("acme", body, encoding)
    assert queue.bodies == []
    assert adapters.clusters.page("acme", None, 10, None).rows == []


@pytest.mark.parametrize("body", ["", "poison", "AAAA", pack(ENVELOPE)[:-8], pack(ENVELOPE).swapcase()])
def test_what_is_no_envelope_is_a_bad_message(body: str) -> None:
    with pytest.raises(BadMessage, match="no envelope"):
        unpack(body)
