"""OpenTelemetry spans. They cost next to nothing in a process that exports none (`span_export.py`).

The spans of a call are one trace, whose id is the call's id, so that every process can add to it without a stored or
transmitted context. Its root span is recorded when the call ends. Attributes hold ids and sizes, never personal data,
secrets, or messages of exceptions.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from http import HTTPStatus
from typing import Final, TypeAlias
from uuid import UUID

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

tracer: Final = trace.get_tracer("switchboard")
SPAN_ID_MASK: Final = (1 << 64) - 1
root_trace_id: Final[ContextVar[int | None]] = ContextVar("root_trace_id", default=None)
"""Trace id of the call whose root span is being recorded."""
_propagator: Final = TraceContextTextMapPropagator()

Attributes: TypeAlias = Mapping[str, str | int | float | bool]


@contextmanager
def span(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    context: Context | None = None,
) -> Iterator[Span]:
    """Run a block in a span, a child of the current one or of `context`. Exceptions mark it as failed by their type."""
    with tracer.start_as_current_span(
        name, context, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except Exception as error:
            fail(current, type(error).__name__)
            raise


def fail(current: Span, error_type: str) -> None:
    """Mark a span as failed, with a type of error that has few values."""
    current.set_attribute("error.type", error_type)
    current.set_status(StatusCode.ERROR)


def build_call_context(call_id: UUID) -> Context:
    """Build the context of a call's trace, for spans below its root span."""
    root = SpanContext(call_id.int, get_root_span_id(call_id.int), is_remote=True)
    return trace.set_span_in_context(NonRecordingSpan(root), Context())


def get_root_span_id(trace_id: int) -> int:
    """Return the id of the root span of a call's trace: the random half of the call's id."""
    return trace_id & SPAN_ID_MASK


def record_root_span(call_id: UUID, name: str, began: datetime, ended: datetime, attributes: Attributes) -> None:
    """Record the root span of a call that has ended."""
    token = root_trace_id.set(call_id.int)
    try:
        root = tracer.start_span(
            name, Context(), SpanKind.INTERNAL, attributes, start_time=_convert_to_nanoseconds(began)
        )
    finally:
        root_trace_id.reset(token)
    root.end(_convert_to_nanoseconds(ended))


def link_call(call_id: UUID) -> None:
    """Link the current span, such as that of a request, to the trace of the call that it creates."""
    current = trace.get_current_span()
    if current.is_recording():
        current.add_link(trace.get_current_span(build_call_context(call_id)).get_span_context())


class RequestTrace:
    """The span of an HTTP request to this server: the current one from here until `end`.

    It continues the caller's trace (W3C Trace Context, `traceparent`), which also exists without traces of our own.
    """

    def __init__(self, method: str, route: str, *, traceparent: str) -> None:
        caller = _propagator.extract({"traceparent": traceparent}, Context())
        attributes = {"http.request.method": method, "http.route": route}
        self._span = tracer.start_span(f"{method} {route}", caller, SpanKind.SERVER, attributes)
        self._token = attach(trace.set_span_in_context(self._span, caller))

    @property
    def log_fields(self) -> dict[str, str]:
        """The ids of trace and span for log lines; nothing without a trace."""
        ids = self._span.get_span_context()
        if not ids.is_valid:
            return {}
        return {"trace_id": trace.format_trace_id(ids.trace_id), "span_id": trace.format_span_id(ids.span_id)}

    def end(self, status: int) -> None:
        """End the span with the status of the response; server errors make it a failed one."""
        self._span.set_attribute("http.response.status_code", status)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            fail(self._span, str(status))
        self._span.end()
        detach(self._token)


def build_trace_headers() -> dict[str, str]:
    """Build the headers that continue the current trace at a receiver (W3C Trace Context); none if it is not sampled,
    so that receivers decide for themselves.
    """
    headers: dict[str, str] = {}
    if trace.get_current_span().get_span_context().trace_flags.sampled:
        _propagator.inject(headers)
    return headers


def convert_elapsed(seconds: float) -> int:
    """Return the time of a moment so many seconds ago as a span's time, in nanoseconds since 1970."""
    return time.time_ns() - round(seconds * 1e9)


def _convert_to_nanoseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6) * 1000
