"""What made a cluster: real clusters of Dask's, and classes that stand where other packages have theirs."""

from __future__ import annotations

from typing import Any

import pytest
from distributed import LocalCluster, Scheduler, SpecCluster, SSHCluster
from distributed.deploy.subprocess import SubprocessScheduler

from daskscope.collect.kind import kind_here, kind_of
from tests.plugin.rig import Cluster, quiet_scheduler


def local(kind: type[LocalCluster] = LocalCluster) -> LocalCluster:
    return kind(n_workers=0, processes=False, dashboard_address="127.0.0.1:0", asynchronous=True,
                protocol="tcp://", host="127.0.0.1", scheduler_port=0)  # fmt: skip


def scheduler_of(cluster: Any) -> Scheduler:
    return cluster.scheduler


class Ours(LocalCluster):
    """A site's own."""


class Spec(SpecCluster):
    """Made by nobody that anybody knows."""


def of_package(module: str, name: str, *bases: type) -> object:
    return type(name, bases, {"__module__": module})()


@pytest.mark.asyncio
async def test_a_local_cluster_is_known_on_both_sides() -> None:
    async with local() as cluster:
        assert kind_of(cluster) == "LocalCluster"
        assert kind_here(scheduler_of(cluster), {"SLURM_JOB_ID": "7"}) == "LocalCluster", "before what its job shows"


@pytest.mark.asyncio
async def test_a_class_of_the_user_s_own_goes_by_the_one_that_is_known() -> None:
    async with local(Ours) as cluster:
        assert kind_of(cluster) == "LocalCluster"
        assert kind_here(scheduler_of(cluster), {}) == "LocalCluster"


@pytest.mark.asyncio
async def test_of_several_clusters_in_a_process_it_is_the_scheduler_s_own() -> None:
    async with local(), Spec(scheduler={"cls": quiet_scheduler, "options": {}}, asynchronous=True) as spec:
        assert kind_here(scheduler_of(spec), {}) == "Spec"


@pytest.mark.asyncio
async def test_a_cluster_that_a_function_makes_goes_by_the_function() -> None:
    """None of them is started: that would need hosts."""
    subprocesses = SpecCluster(scheduler={"cls": SubprocessScheduler, "options": {}}, asynchronous=True)
    for cluster, kind in (
        (SSHCluster(["127.0.0.1", "127.0.0.1"], asynchronous=True), "SSHCluster"),
        (subprocesses, "SubprocessCluster"),
        (SpecCluster(scheduler={"cls": quiet_scheduler, "options": {}}, asynchronous=True), "SpecCluster"),
    ):
        assert kind_of(cluster) == kind
        closing: Any = cluster.close()
        await closing


OTHERS = [
    ("dask_kubernetes.operator.kubecluster.kubecluster", "KubeCluster"),
    ("dask_jobqueue.slurm", "SLURMCluster"),
    ("dask_gateway.client", "GatewayCluster"),
    ("dask_cloudprovider.aws.ecs", "FargateCluster"),
    ("dask_yarn.core", "YarnCluster"),
    ("dask_cuda.local_cuda_cluster", "LocalCUDACluster"),
]


@pytest.mark.parametrize(("module", "name"), OTHERS)
def test_classes_of_other_packages(module: str, name: str) -> None:
    general = type("JobQueueCluster", (), {"__module__": "dask_jobqueue.core"})
    assert kind_of(of_package(module, name, general)) == name
    theirs = type(of_package(module, name))
    assert kind_of(of_package("acme.clusters", "AcmeCluster", theirs)) == name
    assert kind_of(of_package("acme.clusters", "AcmeCluster", general)) == "AcmeCluster"


def test_a_client_without_a_cluster_tells_nothing() -> None:
    assert kind_of(None) is None


def test_whatever_stands_there_nothing_is_raised() -> None:
    class Odd:
        @property
        def scheduler_spec(self) -> object:
            raise RuntimeError("no")

    assert kind_of(Odd()) == "Odd"
    assert kind_of(of_package("x", "C" * 500)) == "C" * 100


SIGNS = [
    ({"DASK_GATEWAY_CLUSTER_NAME": "ns.1", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "GatewayCluster"),
    ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "Kubernetes"),
    ({"SLURM_JOB_ID": "77"}, "SLURM"),
    ({"PBS_JOBID": "77.head"}, "PBS"),
    ({"LSB_JOBID": "77"}, "LSF"),
    ({"JOB_ID": "77", "SGE_TASK_ID": "undefined"}, "SGE"),
    ({"JOB_ID": "77"}, ""),
    ({"SLURM_JOB_ID": ""}, ""),
    ({}, ""),
]


@pytest.mark.parametrize(("environment", "kind"), SIGNS)
@pytest.mark.asyncio
async def test_what_the_surroundings_show(cluster: Cluster, environment: dict[str, str], kind: str) -> None:
    assert kind_here(cluster.scheduler, environment) == kind


@pytest.mark.asyncio
async def test_without_dask_s_list_of_clusters_the_signs_tell(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(SpecCluster, "_instances")
    assert kind_here(cluster.scheduler, {"PBS_JOBID": "1"}) == "PBS"
