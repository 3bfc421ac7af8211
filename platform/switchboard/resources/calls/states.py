"""States of a call and the transitions between them (docs/decisions/0007-resource-states.md)."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Literal
from uuid import UUID

from switchboard.engine.conversation.call import CallUsage, EndedReason, HandoffRecord, Intervention, VariableRecord
from switchboard.engine.conversation.variables import Variables
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.encryption.content import Content, open_content, seal_content
from switchboard.foundation.events.catalog import (
    CallCompleted,
    CallEvent,
    CallFailed,
    CallHandedOff,
    CallRinging,
    CallStarted,
)
from switchboard.foundation.events.outbox import publish
from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.traces import record_root_span
from switchboard.foundation.web.errors import (
    ApiError,
    DestinationNotAllowed,
    InsufficientBalance,
    OnDoNotCallList,
    TooManyCalls,
)
from switchboard.resources.billing import ledger
from switchboard.resources.billing.ledger import calculate_call_costs
from switchboard.resources.calls import call_queue
from switchboard.resources.calls.models import CHAT, ORDER, Call
from switchboard.resources.destinations.service import pause_at_limits
from switchboard.resources.identity.policy import Prices
from switchboard.resources.identity.service import get_policy

FinalStatus = Literal["completed", "busy", "no-answer", "failed", "canceled"]
RINGING_TIMEOUT = timedelta(seconds=60)
MEDIA_TIMEOUT = timedelta(seconds=20)
FORWARDED_TIMEOUT = timedelta(hours=4)
REFUSAL_REASONS: dict[type[ApiError], EndedReason] = {
    OnDoNotCallList: EndedReason.DO_NOT_CALL,
    DestinationNotAllowed: EndedReason.DESTINATION_NOT_ALLOWED,
    InsufficientBalance: EndedReason.INSUFFICIENT_BALANCE,
}
"""Reasons of refused calls, by the error that refuses them. Other errors give no reason."""


OPENED = ("metadata", "variables")
"""Fields of the events that stand encrypted in the row."""


def is_over(call: Call) -> bool:
    """Return whether the call is in a final state."""
    return call.status not in ORDER


async def build_call_event(session: ReadSession, kind: type[CallEvent], call: Call, **facts: object) -> CallEvent:
    """Build an event with the call's current state, and with facts of its own."""
    await open_content(session, call)
    return kind.model_validate(
        {
            **{name: getattr(call, name) for name in kind.model_fields if hasattr(call, name) and name not in OPENED},
            **facts,
            "call_id": call.id,
            "metadata": call.call_metadata.value,
            "variables": call.variables.value,
        }
    )


def mark_accepted(call: Call) -> None:
    """Record that the carrier is about to dial. A late or repeated event changes nothing."""
    if call.status == "queued":
        call.watch_at = now() + RINGING_TIMEOUT


async def mark_ringing(session: WriteSession, call: Call) -> None:
    """Record that the destination's phone rings. A late or repeated event changes nothing."""
    if call.status == "queued":
        call.status, call.watch_at = "ringing", now() + RINGING_TIMEOUT
        if call.direction == "outbound":
            await publish(session, await build_call_event(session, CallRinging, call), depth=call.cause_depth)


async def start_call(session: WriteSession, call: Call) -> None:
    """Record that the call is connected. A repeated event changes nothing."""
    if call.status in ("queued", "ringing"):
        call.status, call.started_at, call.watch_at = "in-progress", now(), now() + MEDIA_TIMEOUT
        await publish(session, await build_call_event(session, CallStarted, call), depth=call.cause_depth)


async def finish_call(
    session: WriteSession,
    call: Call,
    status: FinalStatus,
    *,
    reason: EndedReason | None = None,
    error: str | None = None,
    used: tuple[Mapping[UUID, CallUsage], float] | None = None,
) -> None:
    """End the call and charge its cost. Only the first end counts, so `cost_total` is always what the ledger has.

    An `ended_at` that has been set before stays, for an end that was noticed late. A call that a machine answered ends
    with `voicemail`, also if the machine hangs up first. `used` is the usage of each agent, by its id, and the call's
    seconds of audio. Without them, after a forward or a crash, the cost is that of the call's minutes. A chat has no
    duration, and `cost_total` has the cost of its answers already.
    """
    if is_over(call):
        return
    if reason is EndedReason.CALLER_HUNG_UP and call.answered_by == "machine":
        reason = EndedReason.VOICEMAIL
    call.status, call.ended_at = status, call.ended_at or now()
    call.ended_reason, call.error_message = reason.value if reason else None, error
    if call.started_at is not None and call.carrier != CHAT:
        call.duration_seconds = max(0, round((call.ended_at - call.started_at).total_seconds()))
    call.watch_at, call.holder, call.prompt_variables, call.parts = None, None, Content(None), Content([])
    with session.no_autoflush:  # the call's row is written once, with its cost
        await call_queue.end_waiting(session, call.id, was_lost=status == "failed")
        usage, seconds = used or ({}, call.duration_seconds)
        if seconds:
            prices = (await get_policy(session, call.organization_id)).prices
            total = CallUsage.from_parts(usage.values())
            parts = calculate_call_costs(prices, total, duration_seconds=seconds)
            call.cost_parts = {name: float(amount) for name, amount in parts.items()}
            call.cost_total = sum(parts.values(), start=Decimal(0))
            if len(usage) > 1:
                call.agent_costs = {str(id_): _cost_agent(prices, used_by) for id_, used_by in usage.items()}
    await ledger.settle_hold(session, "call", call.id, call.cost_total)
    metrics.calls.labels(call.direction, status).inc()
    label = metrics.get_organization_label(call.organization_id)
    metrics.organization_calls.labels(label, call.direction, status).inc()
    session.after_commit(partial(_record_trace, call))
    if call.direction == "outbound" or call.transferred_to is not None:
        await pause_at_limits(session, "calls_per_hour", "minutes_per_hour")
    ended = await build_call_event(session, CallCompleted if status == "completed" else CallFailed, call)
    await publish(session, ended, depth=call.cause_depth)


def _cost_agent(prices: Prices, usage: CallUsage) -> dict[str, float]:
    """Return what an agent has cost in a call, by part, besides the carriage."""
    parts = calculate_call_costs(prices, usage, duration_seconds=0)
    return {name: float(amount) for name, amount in parts.items() if name != "carriage"}


async def record_handoff(session: WriteSession, call: Call, handoff: HandoffRecord) -> None:
    """Record a hand-off in the (locked) call's row, with its event, unless an earlier attempt has."""
    record = {**asdict(handoff), "from_agent_id": str(handoff.from_agent_id), "to_agent_id": str(handoff.to_agent_id)}
    if record not in call.handoffs:
        call.handoffs = [*call.handoffs, record]
        await publish(session, await build_call_event(session, CallHandedOff, call, **record), depth=call.cause_depth)


def record_interventions(call: Call, found: Iterable[Intervention]) -> None:
    """Record interventions in the (locked) call's row, unless an earlier attempt has."""
    records = ({**asdict(each), "agent_id": str(each.agent_id)} for each in found)
    call.interventions = [*call.interventions, *(record for record in records if record not in call.interventions)]


def build_variables(call: Call, contact: Variables) -> Variables:
    """Return the variables of a call whose row is open: its numbers, those of its contact, its metadata, and what
    agents have learned.

    The metadata of an inbound call came with it, and anybody can send SIP headers; that of a chat is the platform's.
    """
    given = call.prompt_variables.value or call.call_metadata.value
    is_ours = call.direction == "outbound" or call.carrier == CHAT
    variables = Variables.from_texts(given, "metadata" if is_ours else "carrier")
    if call.carrier != CHAT:
        variables.set("calling_number", call.from_number, "carrier")
        variables.set("called_number", call.to_number, "carrier")
    for name, known in contact.values.items():
        variables.set(name, known.value, known.origin)
    for name, learned in call.variables.value.items():
        variables.set(name, learned["value"], learned["origin"])
    return variables


async def keep_variables(session: WriteSession, call: Call, learned: Iterable[VariableRecord]) -> None:
    """Keep variables in the (locked) call's row, each with where it came from."""
    await open_content(session, call)
    kept = {
        each.name: {
            "value": each.value,
            "origin": each.origin,
            "agent_id": str(each.agent_id),
            "timestamp_ms": each.timestamp_ms,
        }
        for each in learned
    }
    call.variables = Content({**call.variables.value, **kept})
    await seal_content(session, call)


def expect_hang_up(session: WriteSession, call: Call) -> None:
    """Have a worker hang up what the carrier still has of a call that has ended."""
    if call.carrier_call_id is not None or call.transfer_target is not None:
        call.watch_at = now()
        session.wake("hang_up_call")


async def refuse_call(session: WriteSession, call: Call, refusal: ApiError) -> None:
    """End a call that the organization may not have now."""
    status: FinalStatus = "busy" if isinstance(refusal, TooManyCalls) else "failed"
    await finish_call(session, call, status, reason=REFUSAL_REASONS.get(type(refusal)), error=refusal.detail)


async def _record_trace(call: Call) -> None:
    """Record the root span of the call's trace."""
    facts = {
        "gen_ai.conversation.id": call.id,
        "gen_ai.agent.id": call.agent_id,
        "switchboard.organization.id": call.organization_id,
        "switchboard.call.direction": call.direction,
        "switchboard.call.status": call.status,
        "switchboard.call.ended_reason": call.ended_reason,
        "switchboard.call.carrier": call.carrier,
    }
    attributes = {name: str(fact) for name, fact in facts.items() if fact is not None}
    record_root_span(call.id, "call", call.created_at, call.ended_at or now(), attributes)
