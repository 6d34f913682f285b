"""A cluster is deleted out of sealed and open days, wherever these lie."""

from daskscope.testing import CLUSTER, START_MS, exception, message
from daskscope_lambdas.service.compact import Compactor
from daskscope_lambdas.service.deletion import REST_DAYS, Deleter
from daskscope_lambdas.service.envelope import Envelope
from daskscope_lambdas.service.exclusions import Exclusions
from daskscope_lambdas.service.found import Asker
from daskscope_lambdas.service.tidy import Tidier
from daskscope_lambdas.service.write import Writer
from daskscope_lambdas.testing import FakeClock
from daskscope_lambdas.wiring import Adapters
from daskscope_query import layout

OTHER = "0" * 31 + "2"
START = START_MS / 1000
DAY_S = 86_400.0


def _compact(world: Adapters) -> None:
    exclusions = Exclusions(world.deletions, world.clusters)
    Compactor(world.objects, world.seals, world.clock, world.lake_root, exclusions).run()
    Deleter(world).run()
    Tidier(world).run()


def _seen(world: Adapters) -> list[tuple[str, int]]:
    """Clusters of the exceptions that a team sees, and how many clusters the roll-ups count."""
    asker = Asker(world.lake_root, world.seals, world.deletions)
    days = (layout.day_of(START), layout.day_of(world.clock.now()))
    rows = asker.ask("exceptions", "acme", days, limit=99, offset=0).records()
    kinds = asker.ask("families", "acme", days, limit=99, offset=0).records()
    return sorted({(row["cluster"], kind["count"]) for row in rows for kind in kinds})


def test_a_cluster_is_deleted_for_good_and_no_other(world: Adapters, clock: FakeClock) -> None:
    for day in (0, 1):
        clock.at = START + day * DAY_S
        told = [
            Envelope(
                account="acme",
                cluster_id=number,
                received_at=clock.now(),
                message=message(cluster=uuid, seq=day, exceptions=[exception(no=day, count=1)]),
            )
            for number, uuid in enumerate((CLUSTER, OTHER), 1)
        ]
        for envelope in told:
            world.clusters.enrol("acme", envelope.message.cluster, START, clock.now())
        Writer(world.objects, world.seals).write(told, f"batch-{day}")
        if day == 0:
            clock.at = (START // DAY_S + 1) * DAY_S + 2 * 3600 + 1
            _compact(world)
    assert _seen(world) == [(OTHER, 4), (CLUSTER, 4)]
    Deleter(world).delete_cluster(world.clusters.find("acme", OTHER), "test")
    assert _seen(world) == [(CLUSTER, 2)]
    clock.advance(600)
    _compact(world)
    for _ in range(2):
        clock.advance(DAY_S + 3600)
        _compact(world)
        assert _seen(world) == [(CLUSTER, 2)]
    clock.advance(REST_DAYS * DAY_S)
    for _ in range(2):
        clock.advance(3700)
        _compact(world)
    assert world.deletions.pending() == []
    assert _seen(world) == [(CLUSTER, 2)]
    assert not list(world.objects.list("open/"))
    assert not [key for key in world.objects.list("") if OTHER.encode() in world.objects.get(key)]
