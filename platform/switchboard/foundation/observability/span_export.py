"""Export of spans over OTLP/HTTP, configured by OpenTelemetry's own variables (docs/how-to/observability.md).

A thread sends the spans in batches from a bounded queue, which drops spans while the receiver cannot be reached or is
slow.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from opentelemetry import trace

from switchboard.foundation.settings import SettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL: Final = "http/protobuf"
BATCH_SPANS: Final = 128
"""Spans in a batch: a batch is encoded in two milliseconds, in which live calls may have to wait. The SDK's own default
is four times as much.
"""
CLOSE_SECONDS: Final = 3.0
"""Time for the last batch when the process stops; a receiver that does not respond must not delay a restart."""


@contextmanager
def export_spans(role: str) -> Iterator[None]:
    """Export this process's spans within the block, if an endpoint is set. `role` is `serve` or `worker`.

    Raises `SettingsError` for a protocol that is not supported.
    """
    if not is_enabled():
        yield
        return
    protocol = next((os.environ[name] for name in PROTOCOLS if os.environ.get(name)), PROTOCOL)
    if protocol != PROTOCOL:
        raise SettingsError(f"OTEL_EXPORTER_OTLP_PROTOCOL: {protocol} is not supported; use {PROTOCOL}")
    provider = _build_provider(role)
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        # Shutting down waits up to 30 seconds for a receiver that does not respond, and has no parameter to shorten
        # that.
        closing = threading.Thread(target=provider.shutdown, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)


def is_enabled() -> bool:
    """Return whether the environment asks for traces."""
    return (
        any(os.environ.get(name) for name in ENDPOINTS)
        and os.environ.get("OTEL_SDK_DISABLED", "").lower() != "true"
        and os.environ.get("OTEL_TRACES_EXPORTER", "otlp") == "otlp"
    )


def _build_provider(role: str) -> "TracerProvider":
    # Imported here because it takes 0.2 seconds, which processes without traces need not spend.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from switchboard.foundation.observability.call_sampling import CallIdGenerator, CallSampler

    # The SDK lets these attributes override the operator's.
    defaults = {"service.name": f"switchboard-{role}", "service.version": version("switchboard-voice")}
    named = f"service.name={os.environ.get('OTEL_SERVICE_NAME', '')},{os.environ.get('OTEL_RESOURCE_ATTRIBUTES', '')}"
    given = {pair.partition("=")[0].strip() for pair in named.split(",") if pair.partition("=")[2]}
    resource = Resource.create({name: value for name, value in defaults.items() if name not in given})
    provider = TracerProvider(resource=resource, id_generator=CallIdGenerator(), shutdown_on_exit=False)
    provider.sampler = CallSampler(provider.sampler)
    batch = None if os.environ.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") else BATCH_SPANS
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), max_export_batch_size=batch))
    return provider
