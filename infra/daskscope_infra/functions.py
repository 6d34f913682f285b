"""The five functions, and what each may do: what its handler, its services and their adapters call, and no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as event_sources
from constructs import Construct

from daskscope_infra.bundles import Family
from daskscope_infra.function import Function
from daskscope_infra.lake_tables import AUDIT
from daskscope_infra.reports import INCOMING, PRIVATE, PUBLIC, SHOWN
from daskscope_infra.settings import Settings
from daskscope_infra.stores import Stores
from daskscope_lambdas import registry
from daskscope_query.layout import CATALOG, CODE, DEAD, LATE, OPEN, PRICES, ROLLUPS, SEALED, SEALS, UNUSED

Code = Callable[[Family], lambda_.Code]

BATCH = 1000
"""Messages a file, as in `daskscope serve`."""
BATCH_WITHOUT_WINDOW = 10
"""SQS's most, where it may not wait."""
WRITERS = 4
"""At a time: one keeps up with a thousand messages a second, and many would share them out into many small files."""


@dataclass(frozen=True, slots=True)
class _Shape:
    module: str
    family: Family
    memory_mib: int
    timeout_s: int
    scratch_mib: int = 512
    """Under /tmp. So much every function has."""


# A message may have 16 MiB unpacked, and the imports alone take 140.
_INGEST = _Shape("ingest", "light", 512, 15)
_WRITE = _Shape("write", "heavy", 1024, 60)
# API Gateway gives up after 30 seconds.
_API = _Shape("api", "heavy", 1769, 29)
_SWEEP = _Shape("sweep", "light", 256, 50)
# Seals a whole day at once: what DuckDB cannot hold while it sorts goes to /tmp.
_COMPACT = _Shape("compact", "heavy", 3008, 900, scratch_mib=2048)


def hidden_s(settings: Settings) -> int:
    """How long `write` has a batch to itself: six of its time-outs and the window, as Lambda's manual wants it."""
    return 6 * _WRITE.timeout_s + settings.write_window_s


class Functions(Construct):
    def __init__(self, scope: Construct, id: str, settings: Settings, stores: Stores, code: Code) -> None:
        super().__init__(scope, id)
        self._settings, self._stores, self._code = settings, stores, code
        self.ingest, self.write, self.api, self.sweep, self.compact = (
            self._function(shape) for shape in (_INGEST, _WRITE, _API, _SWEEP, _COMPACT)
        )
        self._let_ingest()
        self._let_write()
        self._let_api()
        self._let_sweep()
        self._let_compact()

    def _function(self, shape: _Shape) -> Function:
        return Function(
            self,
            shape.module.capitalize(),
            self._settings,
            module=shape.module,
            code=self._code(shape.family),
            environment=self._stores.env.variables(),
            memory_mib=shape.memory_mib,
            timeout_s=shape.timeout_s,
            scratch_mib=shape.scratch_mib,
            key=self._stores.key,
        )

    def _let_ingest(self) -> None:
        role, stores = self.ingest.role, self._stores
        # Whose token it is, what they are in the account, and when its clusters are to close.
        stores.items(role, ["dynamodb:GetItem"], ["token/*", "member/*", "policy/*", "cluster/*"])
        stores.items(role, ["dynamodb:PutItem"], ["cluster/*", "number/*"])
        stores.items(role, ["dynamodb:UpdateItem"], ["cluster/*", "account/*"])
        # And that a token is used: nothing else of one can be changed here.
        stores.items(role, ["dynamodb:UpdateItem"], ["token/*"], [registry.KEY, registry.USED_ON])
        stores.objects(role, ["s3:PutObject"], [CODE])
        # Which code is about to go: it is kept under another name.
        stores.names(role)
        stores.objects(role, ["s3:GetObject"], [UNUSED])
        stores.keys(role)
        stores.new_keys(role)
        stores.send(role)
        stores.unlock(role, ["dynamodb", "s3", "sqs", "ssm"])

    def _let_write(self) -> None:
        role, stores, settings = self.write.role, self._stores, self._settings
        stores.items(role, ["dynamodb:GetItem"], ["seals"])
        stores.objects(role, ["s3:PutObject"], [OPEN, LATE, DEAD])
        stores.unlock(role, ["dynamodb", "s3"])
        # This lets the role receive and delete too, and unlocks that.
        self.write.function.add_event_source(
            event_sources.SqsEventSource(
                stores.queues.queue,
                batch_size=BATCH if settings.write_window_s else BATCH_WITHOUT_WINDOW,
                max_batching_window=Duration.seconds(settings.write_window_s),
                max_concurrency=WRITERS,
                report_batch_item_failures=True,
            )
        )

    def _let_api(self) -> None:
        role, stores = self.api.role, self._stores
        stores.items(role, ["dynamodb:GetItem"], ["token/*", "cluster/*", "number/*", "seals"])
        # And what was deleted, so that no answer shows it.
        stores.items(role, ["dynamodb:BatchGetItem"], ["cluster/*", "deletion/*"])
        # Who lives or is new since the catalog was made: so lists know what it does not.
        stores.index(role, registry.LIVING)
        stores.items(role, ["dynamodb:GetItem"], ["account/*"])
        stores.items(role, ["dynamodb:BatchGetItem"], ["number/*"])
        # Who asks a cluster to close writes that down in its row.
        stores.items(role, ["dynamodb:UpdateItem"], ["cluster/*"])
        # Tokens are made, listed and revoked; sessions are tokens, too.
        stores.items(role, ["dynamodb:PutItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem"], ["token/*"])
        # People come, by codes that are good once, and go; a name stays claimed for ever.
        stores.items(role, ["dynamodb:GetItem", "dynamodb:PutItem"], ["user/*", "member/*", "ticket/*"])
        stores.items(role, ["dynamodb:PutItem"], ["joined/*", "peopled/*"])
        stores.items(role, ["dynamodb:BatchGetItem"], ["member/*", "ticket/*"])
        # An account keeps an admin: one goes only while another one is there.
        stores.items(role, ["dynamodb:ConditionCheckItem"], ["member/*"])
        stores.items(role, ["dynamodb:DeleteItem"], ["member/*", "joined/*", "ticket/*"])
        # What the account wants.
        stores.items(role, ["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"], ["policy/*"])
        stores.index(role, registry.LISTING)
        stores.names(role)
        stores.objects(role, ["s3:GetObject"], [OPEN, SEALED, ROLLUPS, CATALOG, PRICES, CODE])
        # What was done to an account, before it is done.
        stores.objects(role, ["s3:PutObject"], [f"{OPEN}{AUDIT}/", LATE])
        self._let_keep_reports()
        stores.keys(role)
        stores.unlock(role, ["dynamodb", "s3", "ssm"])

    def _let_keep_reports(self) -> None:
        role, stores = self.api.role, self._stores
        reports = ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"]
        stores.items(role, reports, ["report/*"])
        stores.items(role, ["dynamodb:UpdateItem"], ["report/*", "reporter/*"])
        stores.file_names(role)
        # Who was let bring or save a file does so in this role's name. Large ones are copied in parts.
        stores.files(role, ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"],
                     [INCOMING, PUBLIC, PRIVATE, SHOWN])  # fmt: skip
        stores.files(role, ["s3:DeleteObject"], [INCOMING, PUBLIC, PRIVATE])

    def _let_sweep(self) -> None:
        role, stores = self.sweep.role, self._stores
        stores.index(role, registry.LIVING)
        stores.items(role, ["dynamodb:BatchGetItem", "dynamodb:UpdateItem"], ["cluster/*", "report/*"])
        # Reports go when their account wants them no longer, or are hidden where it wants none to be public.
        stores.index(role, registry.LISTING)
        stores.items(role, ["dynamodb:GetItem"], ["policy/*"])
        stores.items(role, ["dynamodb:DeleteItem"], ["report/*"])
        stores.file_names(role)
        stores.files(role, ["s3:GetObject"], [PUBLIC, PRIVATE])
        stores.files(role, ["s3:PutObject", "s3:AbortMultipartUpload"], [PRIVATE])
        stores.files(role, ["s3:DeleteObject"], [INCOMING, PUBLIC, PRIVATE])
        stores.unlock(role, ["dynamodb", "s3"])

    def _let_compact(self) -> None:
        role, stores = self.compact.role, self._stores
        stores.items(role, ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"], ["seals"])
        stores.names(role)
        stores.objects(role, ["s3:GetObject"], [OPEN, SEALED, ROLLUPS, CATALOG, PRICES, SEALS, UNUSED, DEAD])
        stores.objects(role, ["s3:PutObject"], [OPEN, SEALED, ROLLUPS, CATALOG, SEALS, LATE, UNUSED])
        # What is sealed goes if somebody deletes it, or wants it kept no longer. No other function takes things away.
        stores.objects(role, ["s3:DeleteObject"], [OPEN, SEALED, ROLLUPS, CATALOG, PRICES, SEALS, UNUSED, CODE, DEAD])
        stores.no_keys(role)
        # The catalog is made of who has changed: who lives, and who is new.
        stores.index(role, registry.LIVING)
        stores.items(role, ["dynamodb:GetItem"], ["account/*"])
        stores.items(role, ["dynamodb:BatchGetItem"], ["number/*"])
        # What was asked to go and how far it has come, and how long things are kept.
        stores.index(role, registry.LISTING)
        stores.items(role, ["dynamodb:BatchGetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"], ["deletion/*"])
        stores.items(role, ["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"], ["policy/*"])
        # A deleted cluster's row becomes the mark that it was deleted, one that is kept no longer goes; so does what
        # stands beside it.
        stores.items(role, ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem"], ["cluster/*"])
        stores.items(role, ["dynamodb:DeleteItem"], ["cluster/*", "number/*", "account/*"])
        # With an account go its tokens and invitations, its people, but for their names, and its reports.
        stores.items(role, ["dynamodb:BatchGetItem"], ["token/*", "member/*", "report/*"])
        stores.items(role, ["dynamodb:DeleteItem"], ["token/*", "ticket/*", "member/*", "joined/*", "peopled/*"])
        stores.items(role, ["dynamodb:DeleteItem"], ["report/*", "reporter/*"])
        stores.files(role, ["s3:DeleteObject"], [INCOMING, PUBLIC, PRIVATE])
        stores.unlock(role, ["dynamodb", "s3"])
