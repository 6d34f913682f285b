"""The answers of a computation alone: did it finish, what failed, what did it cost, what took the time, how others did.

Each is as those of a cluster (answers.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from daskscope_lambdas.ports import ClusterRow
from daskscope_lambdas.service.answers import Answer, Depth, exceptions, time
from daskscope_lambdas.service.found import Record
from daskscope_lambdas.service.words import count, duration, money


def answers(row: ClusterRow, computation: Record, families: Sequence[Record]) -> dict[str, Answer]:
    """By name, in their order. `computation`: its record with groups and `same_code`; `families`: of its exceptions."""
    spent = {action: round(s * 1e6) for action, s in computation["seconds"].items()}
    # As of a cluster that did nothing else.
    alone = replace(row, totals={"n_tasks_erred": computation["n_tasks_erred"], "action_us": spent})
    return {
        "finished": _finished(computation),
        "exceptions": exceptions(alone, Depth(kinds=families)),
        "cost": _cost(computation["cost"]),
        "time": time(alone, Depth(prefixes=computation["groups"])),
        "alike": _alike(computation),
    }


def _finished(computation: Record) -> Answer:
    took, status = computation["duration"], computation["status"]
    tasks = f"{count(computation['n_tasks'], 'task')}, {computation['n_tasks_erred']:,} failed"
    if took is not None:
        sentence = f"It took {duration(took)}; {tasks}."
    elif status == "running":
        sentence = f"It runs; {tasks} so far."
    else:
        sentence = f"Nobody knows how long it took; {tasks}."
    return {"verdict": status, "sentence": sentence}


def _cost(cost: Record) -> Answer:
    figures = {"dollars": cost["dollars"], "currency": cost["currency"]}
    if cost["dollars"] is None:
        return {"verdict": "unknown", "sentence": f"{cost['basis'].capitalize()}.", **figures}
    sentence = f"{money(cost['dollars'], cost['currency'])}, {cost['basis']}."
    return {"verdict": cost["quality"], "sentence": sentence, **figures}


def _alike(computation: Record) -> Answer:
    """How long others with the same code took."""
    same = computation["same_code"]
    if same is None:
        return {"verdict": "unknown", "sentence": "Without its code nobody knows which others were alike."}
    if same["n"] <= 1:
        return {"verdict": "first", "sentence": f"No other computation had this code since {same['since']:%d %b %Y}."}
    ran = f"The same code ran {same['n']:,} times since {same['since']:%d %b %Y}"
    ran += f" on {count(same['n_clusters'], 'cluster')}"
    if same["median_duration"] is None:
        return {"verdict": "repeated", "sentence": f"{ran}; none of them has ended."}
    times = f"{duration(same['least_duration'])} to {duration(same['most_duration'])}"
    place = f"; this one is number {same['rank']:,} from the quickest on" if same["rank"] else ""
    sentence = f"{ran}, in {times}, half of them within {duration(same['median_duration'])}{place}."
    return {"verdict": "repeated", "sentence": sentence}
