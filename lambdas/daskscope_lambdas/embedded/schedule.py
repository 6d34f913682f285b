"""What runs by itself: the queue into the lake, the spools into the queue, the lake in shape, the silent told."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from daskscope_lambdas.embedded.function import Function, FunctionDiedError, Handler
from daskscope_lambdas.embedded.intake import Intake
from daskscope_lambdas.ports import Delivery, QueueFeed
from daskscope_lambdas.service.sweep import EVERY_S as SWEEP_EVERY_S

logger = logging.getLogger("daskscope.serve")

BATCH = 1000
"""Messages a file; DESIGN wants a hundred or more of a busy fleet."""
WINDOW_S = 2.0
"""Pause between two looks into the queue: how old depth may be, with the time it takes to write."""
HIDDEN_S = 120.0
"""How long a batch is another's business; longer than `write` may take."""
TRIES = 3
"""So many times a message may fail, or end the function, before it is buried with the reason. What the stores do to it
does not count."""
COMPACT_EVERY_S = 60.0
"""Thirty files a table come in this time, and a question costs a millisecond of CPU for each."""

LAST_S = 3.0
"""A server that stops waits so long for a last catalog."""
CATALOG_ALONE = {"only": "catalog"}
"""As handlers/compact.py takes it, which is not imported into this process."""


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
        *spools: Path,
    ) -> None:
        self._feed, self._write, self._compact, self._sweep = feed, write, compact, sweep
        self._failures = Counter[str]()
        self._intakes = [Intake(spool, ingest, token) for spool in dict.fromkeys(spools)]

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
        """One batch out of the queue into the lake; whether the queue may hold more. Raises what stopped any of it."""
        batch = await asyncio.to_thread(self._feed.receive, BATCH, HIDDEN_S)
        trouble: Exception | None = None
        try:
            # A message that was there before may be what ended the process: it goes alone and takes no other along.
            for part in [[d for d in batch if d.receive_count == 1], *([d] for d in batch if d.receive_count > 1)]:
                try:
                    if part:
                        await self._deliver(part)
                except Exception as error:  # noqa: BLE001 - those behind it have their turn, then it is told
                    trouble = trouble or error
        except asyncio.CancelledError:
            # The server stops. The next one need not wait until these are visible again; what was deleted stays so.
            await asyncio.to_thread(self._feed.release, [d.receipt for d in batch])
            raise
        if trouble:
            raise trouble
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
        self._failures.update(unsettled)
        done = [d for d in part if d.id not in unsettled]
        await asyncio.to_thread(self._feed.delete, [d.receipt for d in done])
        given_up = [d for d in part if d.id in failed and self._failures[d.id] >= TRIES]
        for delivery in given_up:
            logger.error("Gave up on message %s after %d tries.", delivery.id, self._failures[delivery.id])
            await asyncio.to_thread(self._feed.bury, delivery.receipt, failed[delivery.id])
        for delivery in [*done, *given_up]:
            self._failures.pop(delivery.id, None)

    async def compact_once(self) -> None:
        """Have small files gathered and days that are over sealed."""
        await self._compact(scheduler_event())

    async def leave_catalog(self) -> None:
        """For who reads the lake without a server: one with what was heard last. To be called once `run` has ended."""
        try:
            await asyncio.wait_for(self._compact(CATALOG_ALONE), LAST_S)
        except Exception as error:  # noqa: BLE001 - whatever it was, the server ends all the same
            why = str(error) or f"it took more than {LAST_S:.0f} s"
            logger.warning("No last catalog was made, the next server makes it: %s", why)

    async def sweep_once(self) -> None:
        """Have clusters looked for that fell silent or idle."""
        await asyncio.to_thread(self._sweep, scheduler_event(), None)

    async def take_spool(self) -> None:
        """Take in what plugins kept while there was no server."""
        for intake in self._intakes:
            while await asyncio.to_thread(intake.take):
                pass


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
