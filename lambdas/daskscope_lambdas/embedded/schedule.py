"""What runs by itself: the queue into the lake, the spools into the queue, the lake in shape, the silent told."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from daskscope import wire
from daskscope_lambdas.embedded.function import Function, FunctionDiedError, Handler
from daskscope_lambdas.ports import Delivery, QueueFeed, StoreError
from daskscope_lambdas.service.sweep import EVERY_S as SWEEP_EVERY_S

logger = logging.getLogger("daskscope.serve")

BATCH = 1000
"""Messages a file; DESIGN wants a hundred or more of a busy fleet."""
WINDOW_S = 2.0
"""Pause between two looks into the queue: how old depth may be, with the time it takes to write."""
HIDDEN_S = 120.0
"""How long a batch is another's business; longer than `write` may take."""
RECEIVES = 3
"""So many tries a message gets before it is buried with the reason."""
COMPACT_EVERY_S = 60.0
"""Thirty files a table come in this time, and a question costs a millisecond of CPU for each."""


class Schedule:
    """Each `..._once` does one round, `run` does them for ever."""

    def __init__(
        self,
        feed: QueueFeed,
        write: Function,
        compact: Function,
        ingest: Handler,
        sweep: Handler,
        token: str,
        spool: Path,
    ) -> None:
        self._feed, self._write, self._compact = feed, write, compact
        self._ingest, self._sweep = ingest, sweep
        self._token, self._spool = token, spool
        self._told = set[str]()

    async def run(self) -> None:
        await asyncio.gather(
            _repeat(self._drain_all, WINDOW_S),
            _repeat(self.take_spool, WINDOW_S),
            _repeat(self.compact_once, COMPACT_EVERY_S),
            # Not at once: clusters that the server before this one heard of need a moment to find this one.
            _repeat(self.sweep_once, SWEEP_EVERY_S, SWEEP_EVERY_S),
        )

    async def _drain_all(self) -> None:
        while await self.drain_once():
            pass

    async def drain_once(self) -> bool:
        """One batch out of the queue into the lake; whether the queue may hold more."""
        batch = await asyncio.to_thread(self._feed.receive, BATCH, HIDDEN_S)
        try:
            # A message that was there before may be what ended the process: it goes alone and takes no other along.
            for part in [[d for d in batch if d.receive_count == 1], *([d] for d in batch if d.receive_count > 1)]:
                if part:
                    await self._deliver(part)
        except asyncio.CancelledError:
            # The server stops. The next one need not wait until these are visible again; what was deleted stays so.
            await asyncio.to_thread(self._feed.release, [d.receipt for d in batch])
            raise
        return len(batch) == BATCH

    async def _deliver(self, part: Sequence[Delivery]) -> None:
        try:
            answer = await self._write(sqs_event(part))
        except FunctionDiedError as error:
            logger.warning("Writing %d messages to the lake failed: %s", len(part), error)
            failed = {d.id: str(error) for d in part} if len(part) == 1 else {}
            unsettled = {d.id for d in part}
            # Whatever ended it, these need not wait as if somebody still worked on them. Only the first time, so that
            # a machine in trouble does not use up the tries of a message within seconds.
            await asyncio.to_thread(self._feed.release, [d.receipt for d in part if d.receive_count == 1])
        else:
            unsettled = {item["itemIdentifier"] for item in answer["batchItemFailures"]}
            failed = dict.fromkeys(unsettled, "The message could not be written; the server's log says why.")
        await asyncio.to_thread(self._feed.delete, [d.receipt for d in part if d.id not in unsettled])
        for delivery in part:
            if delivery.id in failed and delivery.receive_count >= RECEIVES:
                logger.error("Gave up on message %s after %d tries.", delivery.id, delivery.receive_count)
                await asyncio.to_thread(self._feed.bury, delivery.receipt, failed[delivery.id])

    async def compact_once(self) -> None:
        """Have small files gathered and days that are over sealed."""
        await self._compact(scheduler_event())

    async def sweep_once(self) -> None:
        """Have clusters looked for that fell silent or idle."""
        await asyncio.to_thread(self._sweep, scheduler_event(), None)

    async def take_spool(self) -> None:
        """Take in what plugins kept while there was no server."""
        paths = sorted(self._spool.glob("*.msg"))
        self._told &= {path.name for path in paths}
        for path in paths:
            try:
                await asyncio.to_thread(self._take_file, path)
            except FileNotFoundError:
                continue  # Another server of this user was faster.
            except (OSError, StoreError) as error:
                # It stays, and those behind it have their turn. One word of it is enough: the next round is soon.
                if path.name not in self._told:
                    self._told.add(path.name)
                    logger.warning("The spooled message %s stays where it is for now: %s", path, error)

    def _take_file(self, path: Path) -> None:
        if path.exists() and not path.is_file():
            raise StoreError("it is no regular file; remove it.")
        encoding = {".zst": "zstd", ".gz": "gzip"}.get(Path(path.stem).suffix, "")
        answer = self._ingest(self._post(path.read_bytes(), encoding), None)
        if answer["statusCode"] == 200:
            path.unlink()
        elif answer["statusCode"] < 500:
            reason = json.loads(answer["body"])["error"]["message"]
            logger.warning("The spooled message %s is not usable and was set aside as *.bad: %s", path, reason)
            path.rename(path.with_suffix(".bad"))
        else:
            raise StoreError("the server could not take it in; its log says why.")

    def _post(self, body: bytes, encoding: str) -> dict[str, Any]:
        return {
            "version": "2.0",
            "rawPath": wire.PATH,
            "headers": {
                "authorization": f"Bearer {self._token}",
                "content-type": wire.CONTENT_TYPE,
                "content-encoding": encoding,
            },
            "requestContext": {"requestId": uuid.uuid4().hex, "http": {"method": "POST", "path": wire.PATH}},
            "body": base64.b64encode(body).decode("ascii"),
            "isBase64Encoded": True,
        }


async def _repeat(work: Callable[[], Awaitable[None]], every_s: float, first_after_s: float = 0.0) -> None:
    await asyncio.sleep(first_after_s)
    while True:
        try:
            await work()
        except Exception:
            # Whatever it was (a full disk, a locked file), the next round finds what this one left.
            logger.exception("A round of %s failed; the next one is in %.0f s.", work.__name__, every_s)
        await asyncio.sleep(every_s)


def sqs_event(deliveries: Sequence[Delivery]) -> dict[str, Any]:
    """As Lambda's event source mapping makes it."""
    return {
        "Records": [
            {
                "messageId": d.id,
                "receiptHandle": d.receipt,
                "body": d.body,
                "attributes": {"ApproximateReceiveCount": str(d.receive_count)},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:local:000000000000:telemetry",
                "awsRegion": "local",
            }
            for d in deliveries
        ]
    }


def scheduler_event() -> dict[str, Any]:
    """As EventBridge Scheduler makes it."""
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": "000000000000",
        "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": "local",
        "resources": [],
        "detail": "{}",
    }
