import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskscope import wire
from daskscope.compression import MAX_MESSAGE_BYTES, compress
from daskscope.errors import BadMessage, TooLarge
from daskscope.testing import event, exception, groups, identity, message, workers
from daskscope_lambdas.service import envelope
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.envelope import Envelope, pack, unpack
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.wiring import LocalAdapters

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


@pytest.fixture
def ingest(adapters: LocalAdapters) -> Ingest:
    return Ingest(adapters.queue, adapters.clusters, CodeKeeper(adapters.objects, adapters.vault), adapters.clock)


def queued(adapters: LocalAdapters) -> list[str]:
    return [delivery.body for delivery in adapters.feed.receive(100, 60)]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(posted=MESSAGES, room=st.integers(-40, 40))
def test_what_is_taken_can_be_read(
    ingest: Ingest, adapters: LocalAdapters, posted: wire.Message, room: int
) -> None:
    """At a limit that the message just keeps, or just does not; whatever it is, both sides know the same."""
    kept = len(pack_plain(posted)) + room
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(envelope, "MAX_PLAIN_BYTES", kept)
        try:
            ingest.take("acme", *compress(wire.encode(posted)))
        except TooLarge:
            assert queued(adapters) == []
            return
        (body,) = queued(adapters)
        assert unpack(body).message == posted
    adapters.feed.delete([delivery.receipt for delivery in adapters.feed.receive(100, 0)])


def pack_plain(posted: wire.Message) -> bytes:
    import msgspec

    return msgspec.json.encode(Envelope(account="acme", cluster_id=1, received_at=1_795_248_000.0, message=posted))
