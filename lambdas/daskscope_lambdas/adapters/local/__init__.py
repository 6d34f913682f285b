"""The embedded world: objects and keys are files, everything else is one SQLite file that several processes share.

    mapping.py    what SQLite and the file system raise, as the ports' errors
    disk.py       ObjectStore: one file per object, written once by a link
    vault.py      Vault: one key file per account, AES-GCM
    report_files.py    ReportFiles, and who brings and sees them: addresses that signing.py signs
    database.py   the SQLite file: schema, connections, transactions
    queue.py  dead_letters.py  clusters.py  deletions.py  policies.py
    reports.py  seals.py  tickets.py  tokens.py  users.py    one port each over that file

It wants a local disk: SQLite's shared log and hard links are not to be had on every network file system.
"""

from daskscope_lambdas.adapters.local.clusters import SqliteClusters
from daskscope_lambdas.adapters.local.database import Database
from daskscope_lambdas.adapters.local.dead_letters import SqliteDeadLetters
from daskscope_lambdas.adapters.local.deletions import SqliteDeletions
from daskscope_lambdas.adapters.local.disk import DiskObjects
from daskscope_lambdas.adapters.local.policies import SqlitePolicies
from daskscope_lambdas.adapters.local.queue import SqliteQueue
from daskscope_lambdas.adapters.local.report_files import DiskReports
from daskscope_lambdas.adapters.local.reports import SqliteReports
from daskscope_lambdas.adapters.local.seals import SqliteSeals
from daskscope_lambdas.adapters.local.tickets import SqliteTickets
from daskscope_lambdas.adapters.local.tokens import SqliteTokens
from daskscope_lambdas.adapters.local.users import SqliteUsers
from daskscope_lambdas.adapters.local.vault import DiskVault

__all__ = [
    "Database",
    "DiskObjects",
    "DiskReports",
    "DiskVault",
    "SqliteClusters",
    "SqliteDeadLetters",
    "SqliteDeletions",
    "SqlitePolicies",
    "SqliteQueue",
    "SqliteReports",
    "SqliteSeals",
    "SqliteTickets",
    "SqliteTokens",
    "SqliteUsers",
]
