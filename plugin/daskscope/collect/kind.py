"""What made a cluster: the class that a user knows it by, or where it runs if only that can be told."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Scheduler

MAX_NAME = 100
MAKERS = frozenset(
    {
        "distributed", "dask_cloudprovider", "dask_cuda", "dask_databricks", "dask_gateway", "dask_jobqueue",
        "dask_kubernetes", "dask_yarn",
    }
)  # fmt: skip
"""Packages whose classes users know by name; a class of the user's own goes by the one that it is made from."""
GENERAL = frozenset({"Cluster", "SpecCluster", "VMCluster", "JobQueueCluster"})
"""Their bases, that say nothing."""
FUNCTIONS = {"distributed.deploy.ssh": "SSHCluster", "distributed.deploy.subprocess": "SubprocessCluster"}
"""Modules of scheduler classes, whose cluster is made by a function and is a mere SpecCluster."""
SIGNS = (
    ("DASK_GATEWAY_CLUSTER_NAME", "GatewayCluster"),
    ("SLURM_JOB_ID", "SLURM"),
    ("PBS_JOBID", "PBS"),
    ("LSB_JOBID", "LSF"),
    ("OAR_JOB_ID", "OAR"),
    ("SGE_TASK_ID", "SGE"),
    ("_CONDOR_JOB_AD", "HTCondor"),
    ("FLUX_JOB_ID", "Flux"),
    ("ECS_CONTAINER_METADATA_URI_V4", "ECS"),
    ("KUBERNETES_SERVICE_HOST", "Kubernetes"),
)
"""Variables that the scheduler's surroundings set, the surest first. Gateway's names what made the cluster. The others
say where it runs: a pod does not know whether the operator or a chart made it."""


def kind_of(cluster: object) -> str | None:
    """The kind of the object that a client has as `client.cluster`; None if it has none. Never raises."""
    if cluster is None:
        return None
    own = type(cluster).__name__
    try:
        known = (each.__name__ for each in type(cluster).__mro__ if each.__module__.partition(".")[0] in MAKERS)
        named = next((name for name in known if name.endswith("Cluster") and name not in GENERAL), None)
        kind = named or _made_by_function(cluster) or own
    except Exception:  # noqa: BLE001  # whatever stands there in a client's place for it
        kind = own
    return kind[:MAX_NAME]


def kind_here(scheduler: Scheduler, environment: Mapping[str, str] | None = None) -> str:
    """The kind as far as the scheduler's own process shows it; empty if nothing does. Never raises."""
    try:
        from distributed.deploy.spec import SpecCluster

        for cluster in list(SpecCluster._instances):
            if getattr(cluster, "scheduler", None) is scheduler:
                return kind_of(cluster) or ""
    except Exception:  # noqa: BLE001, S110  # clusters of other threads may come and go meanwhile: then the signs tell
        pass
    environment = os.environ if environment is None else environment
    return next((kind for name, kind in SIGNS if environment.get(name)), "")


def _made_by_function(cluster: object) -> str | None:
    spec: Any = getattr(cluster, "scheduler_spec", None)
    made = spec.get("cls") if isinstance(spec, Mapping) else None
    return FUNCTIONS.get(getattr(made, "__module__", ""))
