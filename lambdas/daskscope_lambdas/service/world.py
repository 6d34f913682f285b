"""What a service of the whole house needs: every port that it may touch."""

from __future__ import annotations

from typing import Protocol

from daskscope_lambdas.ports import Clock, Clusters, Deletions, ObjectStore, Policies, Seals, Tokens, Vault


class World(Protocol):
    """As wiring.Adapters."""

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
    def vault(self) -> Vault: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def lake_root(self) -> str: ...
