"""What a process tells of its software and its machine, as parts of a message; odd values are left out."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from itertools import islice
from typing import Any, Generic, TypeVar, cast

from daskscope import wire
from daskscope.collect.bounds import MAX_BYTES
from daskscope.collect.identity import read_packages

MAX_PACKAGES, MAX_GPUS = 100, 64
MAX_NAME, MAX_PATH = 100, 1000
MAX_CORES = 1 << 20
MAX_SHARED = 1000

_CLOUD = ("provider", "instance_type", "region", "zone", "lifecycle")

T = TypeVar("T")


class Shared(Generic[T]):
    """One object for all that are equal: a thousand workers from one image have one environment."""

    def __init__(self) -> None:
        self._known: dict[str, T] = {}

    def shared(self, value: T | None) -> T | None:
        if value is None:
            return None
        if len(self._known) >= MAX_SHARED:
            self._known.clear()
        return self._known.setdefault(repr(value), value)


class Numbered(Generic[T]):
    """Objects in the order of their first mention; told apart by identity."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self._numbers: dict[int, int] = {}

    def number(self, item: T | None) -> int | None:
        if item is None:
            return None
        number = self._numbers.setdefault(id(item), len(self.items))
        if number == len(self.items):
            self.items.append(item)
        return number


def environment_here() -> wire.Environment:
    """This process's own. Reads packages' metadata from disk: not for an event loop."""
    packages = read_packages()
    packages.pop("pyarrow", None)  # Dask tells none of other processes: it would look like a difference
    return wire.Environment(
        python=platform.python_version(),
        python_path=sys.executable or "",
        os=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        packages=packages,
    )


def environment_told(versions: object, python_path: str = "") -> wire.Environment | None:
    """From what `distributed.versions.get_versions()` gave in that process; None if nothing of it is there.

    Users may start workers and clients that send anything here.
    """
    told = _mapping(versions)
    host, packages = _mapping(told.get("host")), _mapping(told.get("packages"))
    system = (_text(host.get("OS")), _text(host.get("OS-release")))
    environment = wire.Environment(
        python=_text(host.get("python")).removesuffix(".final.0"),
        python_path=python_path,
        os=" ".join(word for word in system if word),
        machine=_text(host.get("machine")),
        packages={
            name: version
            for name, version in islice(packages.items(), MAX_PACKAGES)
            if name != "python" and _text(name) and _text(version)
        },
    )
    return environment if environment != wire.Environment() else None


def python_path_told(payload: Mapping[str, Any]) -> str:
    """From an agent's greeting. Raises ValueError if it is not what an agent sends."""
    path = payload.get("python_path", "")
    if not isinstance(path, str) or len(path) > MAX_PATH:
        raise ValueError("python_path")
    return path


def hardware_told(payload: Mapping[str, Any]) -> wire.Hardware | None:
    """From an agent's greeting, None if it holds none. Raises ValueError if it is not what an agent sends."""
    if "cores" not in payload:
        return None
    gpus = payload.get("gpus", ())
    if not isinstance(gpus, (list, tuple)) or len(cast("list[Any]", gpus)) > MAX_GPUS:
        raise ValueError("gpus")
    return wire.Hardware(
        cores=_whole(payload, "cores", MAX_CORES),
        memory_bytes=_whole(payload, "memory_bytes", MAX_BYTES),
        gpus=[_told("gpus", gpu) for gpu in cast("list[Any]", gpus)],
        **{name: _told(name, payload.get(name, "")) for name in _CLOUD},
    )


def _mapping(value: object) -> Mapping[Any, Any]:
    return cast("Mapping[Any, Any]", value) if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    """Empty for what is no text, or too long for one."""
    return value if isinstance(value, str) and len(value) <= MAX_NAME else ""


def _told(name: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_NAME:
        raise ValueError(name)
    return value


def _whole(payload: Mapping[str, Any], name: str, most: int) -> int:
    value = payload.get(name, 0)
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(name)
    return value
