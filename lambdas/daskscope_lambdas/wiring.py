"""Which adapter stands behind which port: the one place that knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, overload

from daskscope_lambdas.adapters.system import SystemClock
from daskscope_lambdas.env import AwsEnv, DirectEnv, Env, LocalEnv
from daskscope_lambdas.ports import (
    Clock,
    Clusters,
    DeadLetters,
    Deletions,
    ObjectStore,
    Policies,
    Queue,
    QueueFeed,
    ReportFiles,
    ReportHost,
    Reports,
    Seals,
    Tickets,
    Tokens,
    Users,
    Vault,
)

Port = Literal[
    "objects", "queue", "clusters", "deletions", "policies", "seals", "tokens", "users", "tickets", "reports",
    "report_files", "vault",
]  # fmt: skip
"""As in Adapters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """One adapter per port, all of one world. Safe to use from many threads; not over a fork."""

    objects: ObjectStore
    queue: Queue
    dead_letters: DeadLetters
    clusters: Clusters
    deletions: Deletions
    policies: Policies
    seals: Seals
    tokens: Tokens
    users: Users
    tickets: Tickets
    reports: Reports
    report_files: ReportFiles
    vault: Vault
    clock: Clock
    wall: Clock
    """That of who asks: what `since` counts back from. `clock` is the same, but where a lake is only read."""
    lake_root: str
    """Where `objects` lie, as a path or URI that pyarrow opens."""
    warm: Callable[[Iterable[Port]], object]
    """Make now what these would make when they are first used; asks nobody."""
    close: Callable[[], object]
    """Let go of files and connections; happens by itself when the process ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAdapters(Adapters):
    """On one machine somebody must play the event source mapping of the queue, and what takes in and shows reports."""

    feed: QueueFeed
    report_host: ReportHost


@overload
def connect(env: LocalEnv, clock: Clock | None = None) -> LocalAdapters: ...
@overload
def connect(env: Env, clock: Clock | None = None) -> Adapters: ...
def connect(env: Env, clock: Clock | None = None) -> Adapters:
    """Open the world that `env` names. `clock` is the machine's unless given.

    Raises StoreError. Opens anew on each call: the caller keeps the answer.
    """
    clock = clock or SystemClock()
    if isinstance(env, DirectEnv):
        return _direct(env, clock)
    return _aws(env, clock) if isinstance(env, AwsEnv) else _local(env, clock)


def _local(env: LocalEnv, clock: Clock) -> LocalAdapters:
    """Folders and files that are not there yet are made, for their owner alone.

    lake/              the objects
    keys/              the vault's keys: whoever backs up the rest should not keep them together
    reports/           the files of reports
    registry.sqlite    everything else
    """
    from daskscope_lambdas.adapters import local

    root = Path(env.data)
    vault = local.DiskVault(root / "keys")
    objects = local.DiskObjects(Path(env.lake))
    database = local.Database(root / "registry.sqlite")
    queue = local.SqliteQueue(database, clock)
    report_files = local.DiskReports(root / "reports", clock)
    return LocalAdapters(
        objects=objects,
        queue=queue,
        feed=queue,
        dead_letters=local.SqliteDeadLetters(database, clock),
        clusters=local.SqliteClusters(database),
        deletions=local.SqliteDeletions(database),
        policies=local.SqlitePolicies(database),
        seals=local.SqliteSeals(database),
        tokens=local.SqliteTokens(database),
        users=local.SqliteUsers(database),
        tickets=local.SqliteTickets(database, clock),
        reports=local.SqliteReports(database),
        report_files=report_files,
        report_host=report_files,
        vault=vault,
        clock=clock,
        wall=clock,
        lake_root=env.lake,
        warm=lambda _ports: None,
        close=database.close,
    )


def _aws(env: AwsEnv, clock: Clock) -> Adapters:
    """Nothing is made: what `env` names is there, or its first use raises StoreError."""
    from daskscope_lambdas.adapters import aws

    clients = aws.Clients(env.endpoint_url)
    registry = clients.dynamodb
    behind: dict[Port, Callable[[], object]] = {
        "objects": clients.s3,
        "queue": clients.sqs,
        "clusters": registry,
        "deletions": registry,
        "policies": registry,
        "seals": registry,
        "tokens": registry,
        "users": registry,
        "tickets": registry,
        "reports": registry,
        "report_files": clients.s3,
        "vault": clients.ssm,
    }
    return Adapters(
        objects=aws.S3Objects(clients.s3, env.bucket),
        queue=aws.SqsQueue(clients.sqs, env.queue_url),
        dead_letters=aws.SqsDeadLetters(clients.sqs, env.queue_url),
        clusters=aws.DynamoClusters(registry, env.table),
        deletions=aws.DynamoDeletions(registry, env.table),
        policies=aws.DynamoPolicies(registry, env.table),
        seals=aws.DynamoSeals(registry, env.table),
        tokens=aws.DynamoTokens(registry, env.table),
        users=aws.DynamoUsers(registry, env.table),
        tickets=aws.DynamoTickets(registry, env.table),
        reports=aws.DynamoReports(registry, env.table),
        report_files=aws.S3Reports(clients.s3, env.reports_bucket, clock),
        vault=aws.SsmVault(clients.ssm, env.keys, env.keys_kms_key),
        clock=clock,
        wall=clock,
        lake_root=env.lake,
        warm=lambda ports: [behind[port]() for port in ports],
        close=clients.close,
    )


def _direct(env: DirectEnv, clock: Clock) -> Adapters:
    """Nothing is made or changed. By `clock`, time stands where the registry's rows are from."""
    from daskscope_lambdas.adapters import direct
    from daskscope_lambdas.service.catalog_files import CatalogFiles
    from daskscope_lambdas.service.catalog_rows import row_of_json

    place = direct.Place.at(env.lake, {})
    objects = direct.LakeObjects(place)
    files = CatalogFiles(objects)
    catalog = direct.NewestCatalog(lambda: files.newest(env.account, direct.COLUMNS), place.named())
    return Adapters(
        objects=objects,
        queue=direct.NoQueue(),
        dead_letters=direct.NoDeadLetters(),
        clusters=direct.CatalogClusters(catalog, row_of_json),
        deletions=direct.NoDeletions(),
        policies=direct.NoPolicies(),
        seals=direct.LakeSeals(place),
        tokens=direct.OwnToken(),
        users=direct.NoUsers(),
        tickets=direct.NoTickets(),
        reports=direct.NoReports(),
        report_files=direct.NoReportFiles(),
        vault=direct.vault(env.keys),
        clock=direct.CatalogClock(catalog, clock),
        wall=clock,
        lake_root=env.lake,
        warm=lambda _ports: None,
        close=lambda: None,
    )
