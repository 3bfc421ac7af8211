"""Sampling by ratio: all processes decide alike about a call, and as many calls are traced as the ratio says."""

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision, ParentBased, Sampler, TraceIdRatioBased
from switchboard.foundation.database import new_id
from switchboard.foundation.observability.call_sampling import CallSampler
from switchboard.foundation.observability.traces import build_call_context

CALLS = 4000


def is_sampled(sampler: Sampler, context: Context, trace_id: int) -> bool:
    return sampler.should_sample(context, trace_id, "span").decision is Decision.RECORD_AND_SAMPLE


def test_a_ratio_holds_for_the_ids_of_calls() -> None:
    sampler = CallSampler(ParentBased(TraceIdRatioBased(0.25)))
    sampled = sum(is_sampled(sampler, Context(), new_id().int) for _ in range(CALLS))
    assert 0.2 < sampled / CALLS < 0.3


def test_root_span_and_spans_of_other_processes_are_sampled_alike() -> None:
    for sampler in (CallSampler(ParentBased(TraceIdRatioBased(0.5))), CallSampler(TraceIdRatioBased(0.5))):
        for _ in range(100):
            call_id = new_id()
            root = is_sampled(sampler, Context(), call_id.int)
            assert is_sampled(sampler, build_call_context(call_id), call_id.int) == root
