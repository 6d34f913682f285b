"""What ingest took and write has not kept yet, and where messages end that nobody can keep."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

RECEIVES = 10
"""So many tries a message gets. What can never be kept `write` puts aside at the first one, and what ends the function
parts from its batch within them; but what fails below it (a key, a right, a store) fails for all that came in: there is
more than an hour to mend it before that is given up."""
KEPT_DAYS = 14
"""The most that SQS does."""


class Queues(Construct):
    """`hidden_s`: how long a message that was handed out is nobody else's business."""

    def __init__(self, scope: Construct, id: str, *, hidden_s: int, key: kms.IKey | None) -> None:
        super().__init__(scope, id)
        encryption = sqs.QueueEncryption.KMS if key else sqs.QueueEncryption.SQS_MANAGED
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            retention_period=Duration.days(KEPT_DAYS),
            encryption=encryption,
            encryption_master_key=key,
            enforce_ssl=True,
        )
        self.queue = sqs.Queue(
            self,
            "Queue",
            retention_period=Duration.days(KEPT_DAYS),
            visibility_timeout=Duration.seconds(hidden_s),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=RECEIVES),
            encryption=encryption,
            encryption_master_key=key,
            enforce_ssl=True,
        )
