"""The same code across the clusters of an account, and on which machines it ran how fast.

Records are those of docs/reference/http-api.md, times left as datetimes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from daskscope_lambdas.ports import Clock
from daskscope_lambdas.service.code import CodeKeeper
from daskscope_lambdas.service.found import Asker, Found, Record, days_since, found_in
from daskscope_lambdas.service.team import Between

RECENT_DAYS = 30
"""So far back the routes look where nobody says since when: without a roll-up of computations a year takes its time."""


class SameCode:
    def __init__(self, asker: Asker, clock: Clock, codes: CodeKeeper, catalog: Callable[[str], pa.Table]) -> None:
        """`catalog`: an account's clusters as rows of the lake's table of that name."""
        self._asker, self._clock, self._codes, self._catalog = asker, clock, codes, catalog

    def code(
        self,
        account: str,
        limit: int,
        offset: int,
        *,
        between: Between = (None, None),
        user: str | None = None,
    ) -> Found:
        """One record a fingerprint, most worker time first, with the text of the innermost frame, null where it is not
        kept any more. Computations that began `between` count. `more`: `since`."""
        since, until = between
        wanted = {"user": user, "since": since, "until": until, "limit": limit, "offset": offset}
        days = days_since(since, self._clock.now())
        page = self._asker.ask("code", account, days, given={"catalog": self._catalog(account)}, **wanted)
        rows = page.records()
        texts = self._codes.read(account, {found["frame"]["code"] for found in rows if found["frame"]})
        return _since(found_in([_code(found, texts) for found in rows], page), since, offset)

    def hardware(
        self,
        account: str,
        limit: int,
        offset: int,
        *,
        fingerprint: str,
        between: Between = (None, None),
    ) -> Found:
        """Computations of one code that began `between` and have ended, by the machines of the workers that were there,
        fastest first. `more`: `since`."""
        since, until = between
        days = days_since(since, self._clock.now())
        ran = self._asker.ask("code_clusters", account, days, fingerprint=fingerprint)
        wanted = {
            "fingerprint": fingerprint, "clusters": ran.rows.column("cluster").to_pylist(),
            "since": since, "until": until, "limit": limit, "offset": offset,
        }  # fmt: skip
        page = self._asker.ask("hardware", account, days, given={"catalog": self._catalog(account)}, **wanted)
        return _since(found_in([_hardware(found) for found in page.records()], page, ran), since, offset)


def _since(found: Found, since: datetime | None, offset: int) -> Found:
    """With the time from which on computations count."""
    return found if offset else replace(found, more={"since": since})


def _code(found: Record, texts: dict[str, str]) -> Record:
    frame: Record = found["frame"] or {}
    return {
        **{name: found[name] for name in ("fingerprint", "n", "n_clusters")},
        "users": found["users"] or [],
        "first": found["first_at"],
        "last": found["last_at"],
        "median_duration": _seconds(found["median_ms"]),
        "p95_duration": _seconds(found["p95_ms"]),
        "n_failed": found["n_failed"],
        "seconds": found["us"] / 1e6,
        "file": frame.get("file"),
        "line": frame.get("line"),
        "code": texts.get(frame.get("code", "")),
    }


def _hardware(found: Record) -> Record:
    return {
        "instance_types": found["instance_types"] or [],
        "cores": found["cores"],
        "memory": found["memory_bytes"],
        "workers": found["n_workers"],
        "worker_threads": found["worker_threads"],
        "worker_memory_limit": found["memory_limit_bytes"],
        **{name: found[name] for name in ("n", "n_clusters", "n_tasks_erred")},
        "median_duration": _seconds(found["median_ms"]),
        "p95_duration": _seconds(found["p95_ms"]),
        "thread_seconds": found["thread_s"],
        "seconds": found["us"] / 1e6,
        "dollars": found["dollars"],
        "currency": found["currency"],
    }


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1e3
