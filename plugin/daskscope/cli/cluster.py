"""The command that shows one cluster."""

from __future__ import annotations

import json
from typing import Any

import click
import dask.config

from daskscope import client
from daskscope.cli.listing import cluster_argument, number_of
from daskscope.records import printable, shown

_QUESTIONS = {
    "finished": "Did it finish?",
    "exceptions": "What failed?",
    "cost": "What did it cost?",
    "time": "What took the time?",
    "running": "Why is it still running?",
}


@click.command()
@cluster_argument
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of lines.")
@click.option("--account", "--workspace", "account", help="Whose cluster; else the token's own account.")
@click.option("--server", metavar="URL", help="Which server; else the setting, or the one on this machine.")
def cluster(cluster: str, as_json: bool, account: str | None, server: str | None) -> None:
    """Show CLUSTER, its number, scheduler id, UUID, or `latest`: five answers, and what is known of it."""
    with dask.config.set({"daskscope.server": server} if server else {}):
        found = client.get_cluster(number_of(cluster, account), account)
    click.echo(json.dumps(found, indent=2) if as_json else _text(found))


def _text(found: dict[str, Any]) -> str:
    told = [
        f"{question} {printable(found['answers'][name]['sentence'])}"
        for name, question in _QUESTIONS.items()
        if name in found["answers"]
    ]
    if "completeness" in found:
        told.append(printable(found["completeness"]["sentence"]))
    facts = {name: shown(name, value) for name, value in found.items() if name not in ("answers", "completeness")}
    width = max(map(len, facts))
    return "\n".join([*told, "", *(f"{name:<{width}}  {text}" for name, text in facts.items() if text)])
