from collections.abc import Callable

import msgspec
import pytest

from daskscope import wire
from daskscope.compression import MAX_MESSAGE_BYTES, SAMPLED, compress
from daskscope.errors import BadMessage, Deleted, NotFound, TooLarge, UnknownVersion
from daskscope.testing import CLUSTER, START_MS, event, exception, groups, identity, message, workers
from daskscope_lambdas.ports import Beat, Heard, StoreError
from daskscope_lambdas.service.check import MAX_ENTRIES, MAX_ROW_BYTES
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.envelope import Envelope, unpack
from daskscope_lambdas.service.ingest import Ingest
from daskscope_lambdas.service.records import cluster
from daskscope_lambdas.service.rows import to_rows
from daskscope_lambdas.service.size import n_entries
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import LocalAdapters

REPLY = wire.Reply(id=1, url="acme/analytics/clusters/1", accepts=[*SAMPLED])
CODE_HASH = "ba7816bf8f01cfea414140de5dae2223"  # SHA-256 of "abc"


@pytest.fixture
def ingest(adapters: LocalAdapters) -> Ingest:
    return Ingest.over(adapters)


def post(ingest: Ingest, posted: wire.Message, account: str = "acme") -> wire.Reply:
    return ingest.take(account, *compress(wire.encode(posted)))


def queued(adapters: LocalAdapters) -> list[Envelope]:
    return [unpack(delivery.body) for delivery in adapters.feed.receive(100, 60)]


def test_a_message_is_in_the_queue_and_in_the_row(ingest: Ingest, adapters: LocalAdapters, clock: FakeClock):
    reply = post(ingest, message(seq=0))
    assert reply == REPLY
    (envelope,) = queued(adapters)
    assert (envelope.account, envelope.cluster_id, envelope.received_at) == ("acme", 1, clock.now())
    assert envelope.message == message(seq=0)
    row = adapters.clusters.get("acme", 1)
    assert (row.started_at, row.last_received_at, row.seq) == (START_MS / 1000, clock.now(), 0)
    assert row.identity["user"] == "ada"
    assert row.totals["n_threads"] == 4


@pytest.mark.parametrize(("user", "told", "claimed"), [("ann@x.org", "ann@x.org", False), (None, "ada", True)])
def test_a_cluster_is_the_user_of_its_token_or_whom_it_claims(
    ingest: Ingest, adapters: LocalAdapters, clock: FakeClock, user: str | None, told: str, claimed: bool
):
    ingest.take("acme", *compress(wire.encode(message(seq=0))), user=user)
    row = adapters.clusters.get("acme", 1)
    assert (row.identity["user"], row.identity["user_claimed"]) == (told, claimed)
    record = cluster(row, clock.now())
    assert (record["user"], record["user_claimed"]) == (told, claimed)
    rows = {table.name: rows for table, rows in to_rows(queued(adapters))}["clusters"]
    assert rows.select(["user", "user_claimed"]).to_pylist() == [{"user": told, "user_claimed": claimed}]


def test_whose_a_cluster_was_proven_to_be_it_stays(
    ingest: Ingest, adapters: LocalAdapters, monkeypatch: pytest.MonkeyPatch
):
    def told(seq: int, user: str | None, by: Ingest = ingest) -> list[tuple[str, bool]]:
        """In the registry, and in the lake."""
        by.take("acme", *compress(wire.encode(message(seq=seq, identity=identity(user="mallory")))), user=user)
        row = adapters.clusters.get("acme", 1).identity
        rows = {table.name: rows for table, rows in to_rows(queued(adapters))}["clusters"].to_pylist()
        return [(who["user"], who["user_claimed"]) for who in (row, rows[-1])]

    another = Ingest.over(adapters)
    assert told(0, None) == [("mallory", True)] * 2
    assert told(1, None, another) == [("mallory", True)] * 2, "it knows the row as it is now"
    assert told(2, "ann") == [("ann", False)] * 2, "what was claimed gives way to what is proven"
    for seq, user in ((3, None), (4, "bob")):
        assert told(seq, user, another) == [("ann", False)] * 2
    assert told(5, "ann") == [("ann", False)] * 2


def test_of_what_an_earlier_release_queued_nobody_knows_whether_it_was_claimed(ingest: Ingest, adapters: LocalAdapters):
    post(ingest, message(seq=0))
    (envelope,) = queued(adapters)
    earlier = {k: v for k, v in msgspec.to_builtins(envelope).items() if k != "user_claimed"}
    rows = {table.name: rows for table, rows in to_rows([msgspec.convert(earlier, Envelope)])}["clusters"]
    assert rows.select(["user", "user_claimed"]).to_pylist() == [{"user": "ada", "user_claimed": None}]


def test_what_the_account_wants_of_idle_clusters_is_told_with_each_reply(ingest: Ingest, adapters: LocalAdapters):
    adapters.policies.set_wish("acme", "idle", {"timeout_s": 3600, "users": {"ada": 600}, "clusters": {"2": None}})
    assert post(ingest, message(seq=0)).idle_timeout_s == 600
    assert post(ingest, message(seq=1)).idle_timeout_s == 600, "whose it is was told before"
    assert post(ingest, message(seq=0, cluster="5" * 32)).idle_timeout_s is None
    assert post(ingest, message(seq=3, cluster="6" * 32)).idle_timeout_s == 3600, "nobody knows yet whose it is"
    fresh = Ingest.over(adapters)
    assert post(fresh, message(seq=2)).idle_timeout_s == 600, "another process knows it from the registry"


def test_code_goes_to_the_vault_and_nowhere_else(ingest: Ingest, adapters: LocalAdapters):
    post(ingest, message(codes=[wire.Code(hash=CODE_HASH, text="abc")]))
    assert queued(adapters)[0].message.codes == []
    assert CodeKeeper(adapters.objects, adapters.vault).read("acme", [CODE_HASH]) == {CODE_HASH: "abc"}


@pytest.mark.parametrize(("account", "refused"), [("acme", Deleted), ("other", NotFound)])
def test_code_of_a_message_that_is_refused_is_not_kept(
    ingest: Ingest, adapters: LocalAdapters, clock: FakeClock, account: str, refused: type[Exception]
):
    post(ingest, message(seq=0))
    if refused is Deleted:
        adapters.clusters.forget("acme", CLUSTER, clock.now())
    codes = CodeKeeper(adapters.objects, adapters.vault)
    fresh = Ingest.over(adapters)
    with pytest.raises(refused):
        post(fresh, message(seq=1, codes=[wire.Code(hash=CODE_HASH, text="abc")]), account)
    assert list(adapters.objects.list("code/")) == []
    assert codes.read(account, [CODE_HASH]) == {}


def test_a_hash_that_is_not_its_texts_enrols_nobody(ingest: Ingest, adapters: LocalAdapters):
    with pytest.raises(BadMessage, match="is not the SHA-256"):
        post(ingest, message(codes=[wire.Code(hash=CODE_HASH, text="abd")]))
    assert adapters.clusters.page("acme", None, 10, None).rows == []


def test_the_identity_is_wished_for_until_it_came(ingest: Ingest):
    assert post(ingest, message(seq=5)).wish == ["identity"]
    assert post(ingest, message(seq=6)).wish == ["identity"]
    assert post(ingest, message(seq=7, identity=identity())).wish == []
    assert post(ingest, message(seq=8)).wish == []


def test_a_new_process_knows_what_the_registry_knows(ingest: Ingest, adapters: LocalAdapters):
    post(ingest, message(seq=0))
    fresh = Ingest.over(adapters)
    assert post(fresh, message(seq=1)) == REPLY


def test_without_identity_the_start_is_when_the_message_was_made(ingest: Ingest, adapters: LocalAdapters):
    post(ingest, message(seq=3))
    assert adapters.clusters.get("acme", 1).started_at == (START_MS + 30_000) / 1000


def test_a_cluster_of_another_account_is_not_found(ingest: Ingest, adapters: LocalAdapters):
    post(ingest, message(seq=0))
    for _ in range(2):  # the second time nothing of it may have been remembered
        with pytest.raises(NotFound, match="in account other"):
            post(ingest, message(seq=1), "other")
    assert len(queued(adapters)) == 1


def test_a_failing_live_row_does_not_fail_the_message(
    ingest: Ingest, adapters: LocalAdapters, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def locked(account: str, uuid: str, beat: Beat) -> Heard:
        raise StoreError("database is locked")

    monkeypatch.setattr(adapters.clusters, "beat", locked)
    assert post(ingest, message(seq=0)).wish == ["identity"]
    assert len(queued(adapters)) == 1
    assert "was not updated" in caplog.text


def test_a_cluster_that_was_asked_to_close_is_told_with_each_message(
    ingest: Ingest, adapters: LocalAdapters, clock: FakeClock
):
    post(ingest, message(seq=0))
    adapters.clusters.ask_close("acme", message().cluster, "ann", "idle", clock.now())
    assert post(ingest, message(seq=1)).wish == ["close"]
    assert post(ingest, message(seq=1)).wish == ["close"], "the reply to the first try may not have come back"
    assert post(ingest, message(seq=2, cluster="5" * 32)).wish == ["identity"], "another one is not"
    assert post(ingest, message(seq=3, phase="closed", reason="close-requested")).wish == []


@pytest.mark.parametrize(("later_s", "wish"), [(900.0, ["close"]), (900.1, []), (-60.0, ["close"])])
def test_a_wish_that_is_old_ends_no_later_work(
    ingest: Ingest, adapters: LocalAdapters, clock: FakeClock, later_s: float, wish: list[str]
):
    post(ingest, message(seq=0))
    adapters.clusters.ask_close("acme", message().cluster, "ann", None, clock.now())
    clock.advance(later_s)
    assert post(ingest, message(seq=1)).wish == wish


def test_what_comes_again_or_late_changes_no_row(ingest: Ingest, adapters: LocalAdapters):
    post(ingest, message(seq=0))
    post(ingest, message(seq=4, totals=wire.Totals(n_tasks=40)))
    post(ingest, message(seq=3, totals=wire.Totals(n_tasks=30)))
    assert adapters.clusters.get("acme", 1).totals["n_tasks"] == 40
    assert len(queued(adapters)) == 3


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"cluster": "Scheduler-1"}, "$.cluster"),
        ({"boot": "../../etc/passwd"}, "$.boot"),
        ({"seq": -1}, "$.seq"),
        ({"next_s": 0.0}, "$.next_s"),
        ({"next_s": 1e9}, "$.next_s"),
        ({"made_at_ms": -5}, "$.made_at_ms"),
        ({"totals": wire.Totals(n_tasks=10**400)}, "$.totals.n_tasks"),
        ({"totals": wire.Totals(action_us={"compute": -1})}, "$.totals.action_us.compute"),
        ({"totals": wire.Totals(idle_since_ms=1 << 62)}, "$.totals.idle_since_ms"),
        ({"lost": {"buffer": 1 << 63}}, "$.lost.buffer"),
        ({"identity": identity(started_at_ms=1 << 60)}, "$.identity.started_at_ms"),
        ({"codes": [wire.Code(hash="0" * 32, text="abc")]}, "$.codes[0].hash"),
        ({"computations": [wire.Computation(no=0, start_ms=0, code=[[]] * MAX_ENTRIES)]}, "$.computations"),
        ({"groups": groups({"no": 0, "dependencies": [0] * MAX_ENTRIES})}, "$.groups.dependencies"),
        ({"groups": groups({"no": 0, "types": [""] * MAX_ENTRIES})}, "$.groups.types"),
        ({"groups": wire.Groups(states={str(n): [] for n in range(MAX_ENTRIES)})}, "$.groups"),
        ({"exceptions": [exception(workers=[""] * MAX_ENTRIES)]}, "$.exceptions"),
        ({"identity": identity(tags={"team": "x" * MAX_ROW_BYTES})}, "$.identity"),
        ({"totals": wire.Totals(action_us={f"{n:090}": 1 for n in range(1_500)})}, "$.totals"),
        ({"lost": {f"{n:090}": 1 for n in range(1_500)}}, "$.lost"),
        ({"reason": "x" * MAX_ROW_BYTES}, "$.reason"),
    ],
)
def test_a_bad_value_is_refused_with_its_place(
    ingest: Ingest, adapters: LocalAdapters, changes: dict[str, object], place: str
):
    with pytest.raises(BadMessage) as refused:
        post(ingest, message(**changes))
    assert refused.value.place == place
    assert queued(adapters) == []
    assert adapters.clusters.page("acme", None, 10, None).rows == [], "a refused message leaves no cluster behind"


def test_what_a_large_cluster_says_at_once_is_taken(ingest: Ingest, adapters: LocalAdapters):
    """Ten times what the plugin sends in one message: as if nothing had been sent for long, and all of it were new."""
    many = range(10_000)
    states, actions = ("released", "waiting", "processing", "memory", "erred", "forgotten"), ("compute", "transfer")
    group = {"states": dict.fromkeys(states, 1), "action_us": dict.fromkeys(actions, 5), "dependencies": [0, 1, 2]}
    frame = wire.Frame(code="c" * 32, file="job.py", line=3)
    posted = message(
        workers=workers([f"tcp://10.0.0.1:{n}" for n in many]),
        groups=groups(*({"no": n, **group} for n in many)),
        computations=[wire.Computation(no=n, start_ms=START_MS, code=[[frame]]) for n in range(20_000)],
        exceptions=[exception(no=n, traceback="") for n in range(20_000)],
        events=[event(no=n) for n in many],
    )
    assert n_entries(posted) > 250_000
    post(ingest, posted)
    assert queued(adapters)[0].message == posted


def test_what_no_queue_takes_leaves_no_cluster_behind(
    ingest: Ingest, adapters: LocalAdapters, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("daskscope_lambdas.service.ingest.MAX_QUEUED_BYTES", 100)
    with pytest.raises(TooLarge, match="in the queue"):
        post(ingest, message(seq=0))
    assert adapters.clusters.page("acme", None, 10, None).rows == []


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: (b"x" * (wire.MAX_BODY_BYTES + 1), None), TooLarge),
        (lambda: (b"not json", None), BadMessage),
        (lambda: (b"not zstd", "zstd"), BadMessage),
        (lambda: (b'{"v": 99, "clusters": []}', None), UnknownVersion),
        (lambda: compress(b" " * (MAX_MESSAGE_BYTES + 1)), TooLarge),
    ],
)
def test_a_bad_body_is_refused(
    ingest: Ingest, adapters: LocalAdapters, make: Callable[[], tuple[bytes, str | None]], error: type[Exception]
):
    with pytest.raises(error):
        ingest.take("acme", *make())
    assert queued(adapters) == []
