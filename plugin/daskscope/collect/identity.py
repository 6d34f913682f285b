"""Who a cluster is: read once, when the watch starts."""

from __future__ import annotations

import getpass
import os
import platform
import socket
import sys
from importlib import metadata
from typing import TYPE_CHECKING

from daskscope import __version__, wire
from daskscope.collect.kind import kind_here
from daskscope.settings import Settings

if TYPE_CHECKING:
    from distributed import Scheduler

try:
    import pwd
except ModuleNotFoundError:  # Windows
    pwd = None

PACKAGES = ("dask", "distributed", "msgpack", "cloudpickle", "tornado", "toolz", "numpy", "pandas", "pyarrow", "lz4")
"""Those that `distributed.versions` compares between scheduler and workers, and what dataframes stand on.

Their metadata is read instead of asking `distributed.versions`, which imports each of them: numpy and pandas take
longer to import than a scheduler may be held up.
"""


def cluster_uuid(scheduler_id: str) -> str:
    """The 32 hex digits of a scheduler's id, `Scheduler-<uuid>`: they name the cluster everywhere."""
    return scheduler_id.removeprefix("Scheduler-").replace("-", "").lower()


def started_ms(scheduler: Scheduler) -> int:
    """Epoch milliseconds of the scheduler's start, by its clock; 0 if it does not tell."""
    try:
        return min(max(round(scheduler.time_started * 1e3), 0), wire.LATEST_MS)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return 0


def read_identity(scheduler: Scheduler, settings: Settings) -> wire.Identity:
    """All but the user, whom `system_user` knows."""
    host = socket.gethostname()
    return wire.Identity(
        scheduler_id=scheduler.id,
        name=settings.name or f"{host}-{cluster_uuid(scheduler.id)[:8]}",
        user="",
        host=host,
        address=scheduler.address,
        dashboard=_dashboard(scheduler),
        started_at_ms=started_ms(scheduler),
        python=platform.python_version(),
        versions=read_packages(),
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        kind=settings.kind or kind_here(scheduler),
        python_path=sys.executable or "",
        remote_close=settings.remote_close,
        tags=settings.tags,
        plugin_version=__version__,
    )


def system_user() -> str:
    """As the system's list of users has it, which no environment variable changes; "unknown" without a name there.

    The list may stand on a server that does not answer: not to be asked on the scheduler's event loop.
    """
    try:
        return getpass.getuser() if pwd is None else pwd.getpwuid(os.getuid()).pw_name
    except (KeyError, OSError, ImportError):  # a container's user without a name
        return "unknown"


def read_packages() -> dict[str, str]:
    """Name to version of those PACKAGES that are installed here."""
    # A package that was imported answers at once; the others are looked up on disk.
    found: dict[str, str] = {}
    for package in PACKAGES:
        module = sys.modules.get(package)
        version = getattr(module, "__version__", None) if module else None
        try:
            found[package] = str(version or metadata.version(package))
        except metadata.PackageNotFoundError:
            continue
    return found


def _dashboard(scheduler: Scheduler) -> str | None:
    service = scheduler.services.get("dashboard")
    port = getattr(service, "port", None)
    if port is None:
        return None
    from distributed.utils import format_dashboard_link, get_ip

    host = scheduler.ip or get_ip()
    return format_dashboard_link(host, port)
