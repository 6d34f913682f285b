"""`daskscope admin dead-letters` and `replay`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from daskscope.errors import NotFound
from daskscope_lambdas.admin_command.listing import write
from daskscope_lambdas.admin_command.registry import on_stores

if TYPE_CHECKING:
    from daskscope_lambdas.service.replay import Dead
    from daskscope_lambdas.wiring import Adapters


@click.command("dead-letters")
@on_stores
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1), help="So many at most.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def dead_letters(world: Adapters, limit: int, as_json: bool) -> None:
    """List the messages that could not be kept, of all accounts.

    Place: store, where it was put aside with the reason; or queue, which gave up on it after its tries.
    """
    from daskscope.records import Records
    from daskscope_lambdas.service.letters import Letters
    from daskscope_lambdas.service.replay import dead

    found = [*islice(dead(Letters(world.objects, world.clock), world.dead_letters), limit + 1)]
    records = Records(map(_record, found[:limit]))
    write(records, as_json, "No dead letters.")
    if len(found) > limit:
        click.echo(f"There are more than {limit}: --limit shows them.", err=True)


@click.command()
@on_stores
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only this one; may be repeated.  [default: all]")
def replay(world: Adapters, ids: tuple[str, ...]) -> None:
    """Send dead letters back into the queue, once what kept them out is mended.

    What is in the lake already is not counted twice. What still cannot be kept comes back.
    """
    from daskscope_lambdas.service import replay as service
    from daskscope_lambdas.service.exclusions import Exclusions
    from daskscope_lambdas.service.letters import Letters

    letters = Letters(world.objects, world.clock)
    exclusions = Exclusions(world.deletions, world.clusters)
    told = service.replay(letters, world.dead_letters, world.queue, ids or None, exclusions)
    click.echo(f"{told.sent} sent back into the queue, {told.left} left.", err=True)
    for problem in told.problems:
        click.echo(f"Not sent: {problem}", err=True)
    if told.unknown:
        raise NotFound(f"There is no dead letter {', '.join(sorted(told.unknown))}.")
    if told.problems:
        raise SystemExit(1)


def _record(each: Dead) -> dict[str, Any]:
    from daskscope_lambdas.service.records import iso

    sender = each.sender
    return {
        "id": each.id,
        "place": each.place,
        "account": sender.account,
        "cluster": sender.cluster_id,
        "uuid": sender.cluster,
        "seq": sender.seq,
        "part": sender.part,
        "received": iso(sender.received_at),
        "died": iso(each.died_at),
        "reason": each.reason,
    }
