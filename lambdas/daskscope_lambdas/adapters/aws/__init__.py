"""AWS: objects in S3, keys in the SSM Parameter Store, the queue in SQS, everything else in one DynamoDB table.

mapping.py    what botocore raises, as the ports' errors
again.py      what is tried once more, and after how long
clients.py    botocore's clients, each made when first needed
objects.py    ObjectStore: conditional puts
report_files.py    ReportFiles: presigned posts, and keys of which CloudFront may read some
queue.py      Queue: the sending end
dead_letters.py    DeadLetters: the queue that the queue's policy names
vault.py      Vault: one SecureString per account
table.py      the DynamoDB table of registry.py, in plain values
clusters.py  deletions.py  policies.py  reports.py  seals.py
tickets.py  tokens.py  users.py     one port each over that table
order.py  packing.py                what stands in its indexes and items
"""

from daskscope_lambdas.adapters.aws.clients import Clients
from daskscope_lambdas.adapters.aws.clusters import DynamoClusters
from daskscope_lambdas.adapters.aws.dead_letters import SqsDeadLetters
from daskscope_lambdas.adapters.aws.deletions import DynamoDeletions
from daskscope_lambdas.adapters.aws.objects import S3Objects
from daskscope_lambdas.adapters.aws.policies import DynamoPolicies
from daskscope_lambdas.adapters.aws.queue import SqsQueue
from daskscope_lambdas.adapters.aws.report_files import S3Reports
from daskscope_lambdas.adapters.aws.reports import DynamoReports
from daskscope_lambdas.adapters.aws.seals import DynamoSeals
from daskscope_lambdas.adapters.aws.tickets import DynamoTickets
from daskscope_lambdas.adapters.aws.tokens import DynamoTokens
from daskscope_lambdas.adapters.aws.users import DynamoUsers
from daskscope_lambdas.adapters.aws.vault import SsmVault

__all__ = [
    "Clients",
    "DynamoClusters",
    "DynamoDeletions",
    "DynamoPolicies",
    "DynamoReports",
    "DynamoSeals",
    "DynamoTickets",
    "DynamoTokens",
    "DynamoUsers",
    "S3Objects",
    "S3Reports",
    "SqsDeadLetters",
    "SqsQueue",
    "SsmVault",
]
