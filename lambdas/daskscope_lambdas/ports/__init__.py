"""What the services need from the world, in their words, and the errors they may meet. Standard library only.

Each port has one contract suite in tests/contract, run against every adapter.

StoreError                anything an adapter could not map to one of these; the cause is kept
├── Missing               no such key, row or token
├── Taken                 a write-once key exists already; what it holds is untouched
├── Gone                  the cluster was deleted, for good
└── Conflict              a conditional change found another state than it expected
"""

from __future__ import annotations

from daskscope_lambdas.ports.accounts import Deletion, Deletions, Policies, Scope, Subject, TokenRow, Tokens
from daskscope_lambdas.ports.clusters import Beat, ClusterPage, ClusterRow, Clusters, Heard, identity_key, start_of_day
from daskscope_lambdas.ports.errors import Conflict, Gone, Missing, ReadOnly, StoreError, Taken
from daskscope_lambdas.ports.people import Membership, Role, Ticket, TicketKind, Tickets, Users
from daskscope_lambdas.ports.queues import MAX_QUEUED_BYTES, Buried, DeadLetters, Delivery, Queue, QueueFeed
from daskscope_lambdas.ports.reports import ReportDraft, ReportFiles, ReportRow, Reports, Upload
from daskscope_lambdas.ports.stores import Clock, ObjectStore, Seals, Vault

__all__ = [
    "MAX_QUEUED_BYTES",
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
    "Gone",
    "Heard",
    "Membership",
    "Missing",
    "ObjectStore",
    "Policies",
    "Queue",
    "QueueFeed",
    "ReadOnly",
    "ReportDraft",
    "ReportFiles",
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
