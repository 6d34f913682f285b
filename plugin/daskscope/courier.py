"""One try at a time in a thread of its own: what is made while a server hangs shall lie on the shelf all the same."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from daskscope.outcome import Outcome
from daskscope.parcel import Parcel


class Courier:
    """`send`, and `outcome` once `is_back`; all from one thread, but for what it calls itself."""

    def __init__(self, deliver: Callable[[Parcel], Outcome], back: Callable[[], None]) -> None:
        """`back` is called in the courier's thread after each try."""
        self._deliver, self._back = deliver, back
        self._jobs: queue.SimpleQueue[tuple[Parcel, Future[Outcome]] | None] = queue.SimpleQueue()
        self._under_way: Future[Outcome] | None = None
        self.cpu_s = 0.0
        """CPU time of the thread."""
        threading.Thread(target=self._run, name="daskscope-courier", daemon=True).start()

    @property
    def is_away(self) -> bool:
        return self._under_way is not None and not self._under_way.done()

    @property
    def is_back(self) -> bool:
        return self._under_way is not None and self._under_way.done()

    def send(self, parcel: Parcel) -> None:
        self._under_way = Future()
        self._jobs.put((parcel, self._under_way))

    def outcome(self) -> Outcome:
        """Of the try that is over. Raises what it raised."""
        under_way, self._under_way = self._under_way, None
        if under_way is None:
            raise RuntimeError("Nothing was sent.")
        return under_way.result()

    def close(self) -> None:
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            parcel, under_way = job
            try:
                under_way.set_result(self._deliver(parcel))
            except Exception as error:  # noqa: BLE001  # whoever asks for the outcome hears of it
                under_way.set_exception(error)
            self.cpu_s = time.thread_time()
            self._back()
