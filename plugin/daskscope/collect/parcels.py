"""Agents as bytes: by value where the other side's Python can read our code, so that it needs no daskscope there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle

from daskscope import __version__, agent
from daskscope.agent.loading import load
from daskscope.agent.plugins import NannyAgent, WorkerAgent
from daskscope.settings import Settings

WORKERS_PER_INTERVAL = 100
"""Profiles that come to the scheduler in one interval, at the most twice as many: each costs its event loop about
half a millisecond, so it is not to be asked for more of them the more workers it has."""


class Parcels:
    """The plugins for workers and nannies, pickled once of a kind. Neither token nor settings go along."""

    def __init__(self, cluster: str, settings: Settings) -> None:
        self._cluster, self._settings = cluster, settings
        self._made: dict[tuple[bool, bool, int], bytes] = {}

    def of(self, versions: Mapping[str, Any], *, nanny: bool, n_workers: int = 1) -> bytes:
        """`versions`: `WorkerState.versions`; `n_workers`: of the cluster. Raises what pickling raises."""
        by_value = _same_python(versions)
        stretch = 1 if nanny else _stretch(n_workers)
        known = self._made.get((by_value, nanny, stretch))
        if known is None:
            plugin = self._nanny() if nanny else self._worker(stretch)
            made = _by_value(plugin) if by_value else cloudpickle.dumps(plugin)
            known = self._made[by_value, nanny, stretch] = made
        return known

    def _worker(self, stretch: int) -> WorkerAgent:
        given = self._settings
        interval_s = given.profile_interval_s * stretch if given.profile else None
        return WorkerAgent(
            cluster=self._cluster, level=given.logs, profile_interval_s=interval_s, hardware=given.hardware
        )

    def _nanny(self) -> NannyAgent:
        """Only asked for where log lines are."""
        return NannyAgent(cluster=self._cluster, level=self._settings.logs or 0)


def _stretch(n_workers: int) -> int:
    """1 up to WORKERS_PER_INTERVAL, then doubled whenever the workers have: few different parcels are made."""
    return 1 << (max(n_workers - 1, 0) // WORKERS_PER_INTERVAL).bit_length()


class _Parcel:
    """A plugin that chooses, where it arrives, by whose code it comes to life."""

    def __init__(self, by_reference: bytes, by_value: bytes) -> None:
        self._pickles = by_reference, by_value

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, bytes, bytes]]:
        return load, (__version__, *self._pickles)


def _by_value(plugin: object) -> bytes:
    """Cloudpickle keeps by whole modules what goes by value, for all of the process: ours are in only meanwhile."""
    by_reference = cloudpickle.dumps(plugin)
    ours = agent.__name__ not in cloudpickle.list_registry_pickle_by_value()
    if ours:
        cloudpickle.register_pickle_by_value(agent)
    try:
        return cloudpickle.dumps(_Parcel(by_reference, cloudpickle.dumps(plugin)))
    finally:
        if ours:
            cloudpickle.unregister_pickle_by_value(agent)


def _same_python(versions: Mapping[str, Any]) -> bool:
    """Byte code differs from one minor release to the next."""
    try:
        theirs = versions["host"]["python"].split(".")[:2]
    except (KeyError, TypeError, AttributeError):
        return False
    return theirs == [str(part) for part in sys.version_info[:2]]
