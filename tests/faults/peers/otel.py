"""OpenTelemetry's SDK: spans in batches by OTLP over HTTP, tried again for ten seconds."""

# pyright: reportMissingImports=false
# A fresh environment has no peers: `make faults` brings them.

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tests.faults.peers.trial import PACE_S, Trial
from tests.faults.proxy import Proxy

PACKAGE = "opentelemetry-sdk"
QUICK_S = 0.01


class _Time:
    """Passes when somebody waits, and then what is due happens."""

    def __init__(self) -> None:
        self.now = 1_795_248_000.0
        self._due: list[tuple[float, int, Callable[[], object]]] = []

    def at(self, when: float, act: Callable[[], object]) -> None:
        heapq.heappush(self._due, (when, len(self._due), act))

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while self._due and self._due[0][0] <= end:
            self.now, _, act = heapq.heappop(self._due)
            act()
        self.now = end

    @property
    def is_over(self) -> bool:
        return not self._due


class _Event:
    """`threading.Event`, in that time."""

    def __init__(self, time: _Time, waited: Callable[[], object] = lambda: None) -> None:
        self._time, self._waited, self._is_set = time, waited, False

    def wait(self, timeout: float) -> bool:
        if not self._is_set:
            self._time.advance(timeout)
        self._waited()
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set


def send(trial: Trial, proxy: Proxy, timeout_s: float) -> None:
    """Its own settings but for the address. Its worker runs here and not in a thread, and its pauses pass as a number:
    it waits in two places, for the next batch and for the next try, and reads a clock in one. A server that says
    nothing says so for `timeout_s`, which counts as the time that the SDK would have waited."""
    from opentelemetry.exporter.otlp.common import http
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._shared_internal import BatchProcessor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    time = _Time()
    exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{proxy.port}/v1/traces")
    with mock.patch.object(BatchProcessor, "worker", return_value=None):
        processor = BatchSpanProcessor(exporter)
    inner: Any = processor._batch_processor
    client: Any = exporter._client

    def waited() -> None:
        # The program ends once all is made: what `shutdown` does first is to say so to the worker.
        inner._shutdown = time.is_over

    inner._worker_awaken = _Event(time, waited)
    client._shutdown_event = _Event(time)
    client._transport = _Scaled(client._transport, time, timeout_s)
    provider = TracerProvider()
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("faults")
    for number in range(trial.n):
        time.at(time.now + number * PACE_S, lambda number=number: tracer.start_span(f"event {number}").end())
    time.at(time.now + trial.down * PACE_S, proxy.listen)
    with mock.patch.object(http, "time", SimpleNamespace(time=lambda: time.now)):
        inner.worker()
    provider.shutdown()


class _Scaled:
    """The SDK's own way of posting, in a fraction of its time."""

    def __init__(self, inner: Any, time: _Time, timeout_s: float) -> None:
        self._inner, self._time, self._timeout_s = inner, time, timeout_s
        self.is_connection_error, self.close = inner.is_connection_error, inner.close

    def request(self, *args: Any, timeout: float, **kwargs: Any) -> Any:
        result = self._inner.request(*args, timeout=min(timeout, self._timeout_s), **kwargs)
        self._time.advance(timeout if "Timeout" in type(result.error).__name__ else QUICK_S)
        return result


def received(posts: Iterable[tuple[str, dict[str, str], bytes]]) -> Counter[str]:
    """How often each span came. OTLP gives a span an id, and no server a rule to drop one that comes again."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    found = Counter[str]()
    for _, _, body in posts:
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                found.update(span.name for span in scope.spans)
    return found
