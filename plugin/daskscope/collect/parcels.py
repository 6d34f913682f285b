"""Agents as bytes: by value where the other side's Python can read our code, so that it needs no daskscope there."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import cloudpickle

from daskscope import agent
from daskscope.agent.plugins import NannyAgent, WorkerAgent
from daskscope.settings import Settings


class Parcels:
    """The plugins for workers and nannies, pickled once each way. Neither token nor settings go along."""

    def __init__(self, cluster: str, settings: Settings) -> None:
        self._worker = WorkerAgent(
            cluster=cluster,
            level=settings.logs,
            profile_interval_s=settings.profile_interval_s if settings.profile else None,
            hardware=settings.hardware,
        )
        self._nanny = None if settings.logs is None else NannyAgent(cluster=cluster, level=settings.logs)
        self._made: dict[tuple[bool, bool], bytes] = {}

    def of(self, versions: Mapping[str, Any], *, nanny: bool) -> bytes:
        """`versions`: `WorkerState.versions`. Raises what pickling raises."""
        by_value = _same_python(versions)
        known = self._made.get((by_value, nanny))
        if known is None:
            plugin = self._nanny if nanny else self._worker
            known = self._made[by_value, nanny] = _by_value(plugin) if by_value else cloudpickle.dumps(plugin)
        return known


def _by_value(plugin: object) -> bytes:
    """Cloudpickle keeps by whole modules what goes by value, for all of the process: ours are in only meanwhile."""
    if agent.__name__ in cloudpickle.list_registry_pickle_by_value():
        return cloudpickle.dumps(plugin)
    cloudpickle.register_pickle_by_value(agent)
    try:
        return cloudpickle.dumps(plugin)
    finally:
        cloudpickle.unregister_pickle_by_value(agent)


def _same_python(versions: Mapping[str, Any]) -> bool:
    """Byte code differs from one minor release to the next."""
    try:
        theirs = versions["host"]["python"].split(".")[:2]
    except (KeyError, TypeError, AttributeError):
        return False
    return theirs == [str(part) for part in sys.version_info[:2]]
