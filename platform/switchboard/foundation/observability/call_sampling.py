"""Extensions of the OpenTelemetry SDK by which all processes write a call's spans into one trace."""

from collections.abc import Sequence
from hashlib import blake2b

from opentelemetry.context import Context
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Sampler, SamplingResult
from opentelemetry.trace import Link, SpanKind, TraceState, get_current_span
from opentelemetry.util.types import Attributes

from switchboard.foundation.observability.traces import SPAN_ID_MASK, get_root_span_id, root_trace_id


class CallIdGenerator(RandomIdGenerator):
    """Random ids, except for the root span of a call, whose ids follow from the call's id."""

    def generate_trace_id(self) -> int:
        return root_trace_id.get() or super().generate_trace_id()

    def generate_span_id(self) -> int:
        call = root_trace_id.get()
        return super().generate_span_id() if call is None else get_root_span_id(call)

    def is_trace_id_random(self) -> bool:
        """Return False: a call's id begins with the time, and calls of one millisecond have similar ids."""
        return False


class CallSampler(Sampler):
    """The operator's sampler, which decides alike about a call in all processes.

    Spans whose parent is a call's root span are judged as if they were that root span, which does not exist yet. The
    trace id is hashed first, because samplers by ratio compare its last 64 bits, and those of a call's id are not
    evenly distributed (RFC 9562, section 5.7).
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def should_sample(  # noqa: PLR0913, PLR0917 - the SDK's signature
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        parent = get_current_span(parent_context).get_span_context()
        if parent.is_valid and parent.span_id == get_root_span_id(trace_id):
            parent_context = Context()
        digest = blake2b(trace_id.to_bytes(16, "big"), digest_size=8).digest()
        spread = trace_id & ~SPAN_ID_MASK | int.from_bytes(digest, "big")
        return self._sampler.should_sample(parent_context, spread, name, kind, attributes, links, trace_state)

    def get_description(self) -> str:
        return self._sampler.get_description()
