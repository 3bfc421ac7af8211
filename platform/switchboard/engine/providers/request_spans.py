"""Spans of requests to vendors, named after OpenTelemetry's semantic conventions for generative AI."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, aclosing
from typing import TypeVar

from opentelemetry.trace import Span, SpanKind

from switchboard.foundation.observability import traces
from switchboard.plugin_sdk import ModelUsage

Item = TypeVar("Item")


def span_request(operation: str, provider: str, model: str | None = None) -> AbstractContextManager[Span]:
    """Run a block in the span of one request to a vendor."""
    return traces.span(f"{operation} {provider}", _describe(operation, provider, model), kind=SpanKind.CLIENT)


async def trace_request(
    operation: str, provider: str, model: str | None, stream: AsyncIterator[Item]
) -> AsyncIterator[Item]:
    """Yield the items of a vendor's stream, with a span from the request to the end of the stream."""
    # Not the current span: the steps of a generator may run in several contexts.
    span = traces.tracer.start_span(
        f"{operation} {provider}", None, SpanKind.CLIENT, _describe(operation, provider, model)
    )
    try:
        # Providers' streams are generators, which can be closed.
        async with aclosing(stream):  # type: ignore[type-var]
            async for item in stream:
                if isinstance(item, ModelUsage):
                    span.set_attribute("gen_ai.response.model", item.model)
                    span.set_attribute("gen_ai.usage.input_tokens", item.input_tokens)
                    span.set_attribute("gen_ai.usage.output_tokens", item.output_tokens)
                yield item
    except Exception as error:
        traces.fail(span, type(error).__name__)
        raise
    finally:
        span.end()


def _describe(operation: str, provider: str, model: str | None) -> dict[str, str]:
    attributes = {"gen_ai.operation.name": operation, "gen_ai.provider.name": provider}
    return attributes if model is None else {**attributes, "gen_ai.request.model": model}
