"""What a service of the whole house needs: every port that it may touch."""

from __future__ import annotations

from typing import Protocol

from daskscope_lambdas.ports import (
    Clock,
    Clusters,
    DeadLetters,
    Deletions,
    ObjectStore,
    Policies,
    Queue,
    ReportFiles,
    Reports,
    Seals,
    Tickets,
    Tokens,
    Users,
    Vault,
)


class World(Protocol):
    """As wiring.Adapters."""

    @property
    def queue(self) -> Queue: ...
    @property
    def objects(self) -> ObjectStore: ...
    @property
    def clusters(self) -> Clusters: ...
    @property
    def deletions(self) -> Deletions: ...
    @property
    def policies(self) -> Policies: ...
    @property
    def seals(self) -> Seals: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def users(self) -> Users: ...
    @property
    def tickets(self) -> Tickets: ...
    @property
    def reports(self) -> Reports: ...
    @property
    def report_files(self) -> ReportFiles: ...
    @property
    def vault(self) -> Vault: ...
    @property
    def dead_letters(self) -> DeadLetters: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def lake_root(self) -> str: ...
