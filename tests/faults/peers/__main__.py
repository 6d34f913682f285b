"""`python -m tests.faults.peers NAME ROW [--short]`: one SDK through one row, in a process that it may fill with its
hooks; prints a JSON object."""

from __future__ import annotations

import json
import logging
from importlib.metadata import version

import click

from tests.faults.peers import PEERS
from tests.faults.peers.trial import ROWS, trial
from tests.faults.proxy import Proxy
from tests.faults.rows.b3_random import TIMEOUT_S
from tests.plugin.ingest_server import Server, answers


@click.command()
@click.argument("name", type=click.Choice(list(PEERS)))
@click.argument("row", type=click.Choice(ROWS))
@click.option("--short", is_flag=True)
def main(name: str, row: str, short: bool) -> None:
    """How many of a row's events arrive by way of the SDK called NAME, and how many of them twice."""
    logging.disable(logging.CRITICAL)
    peer, trouble = PEERS[name], trial(row, short)
    sink = Server(answers(200))
    with sink.running() as url:
        proxy = Proxy(int(url.rpartition(":")[2]))
        proxy.choose = trouble.choose
        with proxy.running():
            if trouble.down:
                proxy.refuse()
            peer.send(trouble, proxy, TIMEOUT_S)
        found = peer.received(sink.posts)
    told = {"tried": trouble.n, "lost": trouble.n - len(found), "came_again": sum(found.values()) - len(found)}
    click.echo(json.dumps({"version": version(peer.PACKAGE), **told}))


if __name__ == "__main__":
    main(prog_name="python -m tests.faults.peers")
