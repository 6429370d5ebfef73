"""Spans for requests and the work behind them, sent by OpenTelemetry (the extra ``otel``)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from memgraph import __version__
from memgraph.errors import ExtraMissing
from memgraph.model.enums import JobName, JobState
from memgraph.model.jobs import ServiceReadiness
from memgraph.service.meters import Work
from memgraph.surfaces.metrics import PrometheusMeters, RequestOutcome, known_method

try:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
    from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError:
    raise ExtraMissing.of("traces need the extra otel", extra="otel") from None

FAILED: Final = 500
"""Statuses from this one on count as failures of the server."""
SENDING_S: Final = 2.0
"""Seconds for sending the last spans; a part of the time that a server has to end."""


class TracingMeters:
    """Figures as in ``PrometheusMeters``, and a span for each operation."""

    def __init__(self, meters: PrometheusMeters, tracer: Tracer) -> None:
        self._meters = meters
        self._tracer = tracer
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def timed(self, work: Work, part: str, orchestrator: str) -> Iterator[None]:
        with (
            self._tracer.start_as_current_span(
                f"{work}.{part}",
                attributes={"memgraph.orchestrator": orchestrator},
                # Its text may hold anything.
                record_exception=False,
                set_status_on_exception=False,
            ),
            self._meters.timed(work, part, orchestrator),
        ):
            yield

    def degraded(self, code: str) -> None:
        get_current_span().add_event("degraded", {"memgraph.code": code})
        self._meters.degraded(code)

    def denied(self, field: str) -> None:
        get_current_span().add_event("denied", {"memgraph.field": field})
        self._meters.denied(field)

    def job_ended(self, job: JobName, state: JobState) -> None:
        self._meters.job_ended(job, state)

    @contextmanager
    def request(self, method: str, traceparent: str | None = None) -> Iterator[RequestOutcome]:
        name = known_method(method)
        carrier = {} if traceparent is None else {"traceparent": traceparent}
        with (
            self._tracer.start_as_current_span(
                name,
                context=self._propagator.extract(carrier),
                kind=SpanKind.SERVER,
                record_exception=False,
                set_status_on_exception=False,
            ) as span,
            self._meters.request(method) as answered,
        ):
            try:
                yield answered
            finally:
                span.update_name(f"{name} {answered.route}")
                span.set_attribute("http.request.method", name)
                span.set_attribute("http.route", answered.route)
                span.set_attribute("http.response.status_code", answered.status)
                if answered.status >= FAILED:
                    span.set_status(Status(StatusCode.ERROR))

    def exposition(self, ready: ServiceReadiness) -> tuple[bytes, str]:
        return self._meters.exposition(ready)


@contextmanager
def tracing(
    meters: PrometheusMeters, exporter: SpanExporter | None = None
) -> Iterator[TracingMeters]:
    """Yield meters that also trace; pending spans are sent at the end of the block, within
    ``SENDING_S``.

    Args:
        exporter: takes the spans; by default OTLP over HTTP, as the environment configures it.
    """
    resource = Resource.create({"service.name": "memgraph", "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    # What it complains of after the server's log has ended is not for the screen.
    complaints, nowhere = logging.getLogger("opentelemetry"), logging.NullHandler()
    complaints.addHandler(nowhere)
    sending = exporter or OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(sending))
    try:
        yield TracingMeters(meters, provider.get_tracer("memgraph", __version__))
    finally:
        # An exporter that is shut down tries no more to reach a collector that is not there.
        given_up = threading.Timer(SENDING_S, sending.shutdown)
        given_up.start()
        provider.shutdown()
        given_up.cancel()
        complaints.removeHandler(nowhere)
