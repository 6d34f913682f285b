"""What the services need from the world, in their words, and the errors they may meet. Standard library only.

Each port has one contract suite in tests/contract, run against every adapter.

StoreError                anything an adapter could not map to one of these; the cause is kept
├── Missing               no such key, row or token
├── Taken                 a write-once key exists already; what it holds is untouched
├── Gone                  the cluster was deleted, for good
├── Full                  there is no room for more
├── NotAdmitted           an address that was given to nobody, or whose time is over
└── Conflict              a conditional change found another state than it expected
"""

from __future__ import annotations

from daskscope_lambdas.ports.accounts import (
    EXPIRED_KEPT_S,
    Deletion,
    Deletions,
    Policies,
    Scope,
    Subject,
    TokenRow,
    Tokens,
)
from daskscope_lambdas.ports.clusters import Beat, ClusterPage, ClusterRow, Clusters, Heard, identity_key, start_of_day
from daskscope_lambdas.ports.errors import Conflict, Full, Gone, Missing, NotAdmitted, ReadOnly, StoreError, Taken
from daskscope_lambdas.ports.people import Membership, Role, Ticket, TicketKind, Tickets, Users
from daskscope_lambdas.ports.queues import MAX_QUEUED_BYTES, Buried, DeadLetters, Delivery, Queue, QueueFeed
from daskscope_lambdas.ports.reports import Arrived, ReportDraft, ReportFiles, ReportHost, ReportRow, Reports, Upload
from daskscope_lambdas.ports.stores import Clock, ObjectStore, Seals, Vault

__all__ = [
    "EXPIRED_KEPT_S",
    "MAX_QUEUED_BYTES",
    "Arrived",
    "Beat",
    "Buried",
    "Clock",
    "ClusterPage",
    "ClusterRow",
    "Clusters",
    "Conflict",
    "DeadLetters",
    "Deletion",
    "Deletions",
    "Delivery",
    "Full",
    "Gone",
    "Heard",
    "Membership",
    "Missing",
    "NotAdmitted",
    "ObjectStore",
    "Policies",
    "Queue",
    "QueueFeed",
    "ReadOnly",
    "ReportDraft",
    "ReportFiles",
    "ReportHost",
    "ReportRow",
    "Reports",
    "Role",
    "Scope",
    "Seals",
    "StoreError",
    "Subject",
    "Taken",
    "Ticket",
    "TicketKind",
    "Tickets",
    "TokenRow",
    "Tokens",
    "Upload",
    "Users",
    "Vault",
    "identity_key",
    "start_of_day",
]
