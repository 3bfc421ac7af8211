"""Rules of calls: listing and placing."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pydantic import JsonValue

from switchboard.engine.conversation.agent_settings import VoicemailPolicy
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, ReadSession, TenantTable, WriteSession, now
from switchboard.foundation.encryption.content import Content, open_content, seal_content
from switchboard.foundation.observability.traces import link_call
from switchboard.foundation.web.errors import InvalidState, NotFound
from switchboard.foundation.web.paging import get_row, paginate
from switchboard.foundation.web.schemas import Page
from switchboard.resources.agents import service as agents
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.redaction import open_redactor
from switchboard.resources.billing import ledger
from switchboard.resources.calls import queries
from switchboard.resources.calls.allowance import CallAllowance, acquire_call_allowance
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.calls.schemas import CallCreate, CallFilters, CallQuery
from switchboard.resources.destinations.clients import is_client
from switchboard.resources.destinations.service import find_refusal
from switchboard.resources.identity.service import get_policy
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.models import PhoneNumber

NAMED_CALLS = 50
POLL_SECONDS = 0.1


async def read_call(database: Database, organization_id: UUID, call_id: UUID) -> Call:
    """Return a call in a transaction of its own, for work that must not hold one. Raises `NotFound`."""
    async with database.read(organization_id) as session:
        return await get_row(session, Call, call_id)


async def read_recorded_call(database: Database, organization_id: UUID, call_id: UUID, *, actor: str) -> Call:
    """Return a call whose recording `actor` is about to read, and record that in the audit log. Raises `NotFound`."""
    async with database.write(organization_id, actor=actor) as session:
        call = await get_row(session, Call, call_id)
        if call.has_recording or call.carrier_recording_id is not None:
            record_audit(session, AuditAction.RECORDING_READ, call_id)
    return call


def get_own_number(call: Call) -> str:
    """Return the organization's number of a call."""
    return call.to_number if call.direction == "inbound" else call.from_number


def get_other_number(call: Call) -> str:
    """Return the other party's number of a call; other text if the carrier sends no number."""
    return call.from_number if call.direction == "inbound" else call.to_number


def choose_caller_id(call: Call, destination: str) -> str:
    """Return the caller id for a destination that the call is passed on to.

    A phone number sees the organization's number, because carriers accept no other. A client sees the other party's,
    unless it is withheld.
    """
    other = get_other_number(call)
    return other if is_client(destination) and other.startswith("+") else get_own_number(call)


def get_voicemail_policy(call: Call) -> VoicemailPolicy:
    """Return the policy for machines that answer a call: nothing for inbound calls."""
    if call.direction == "inbound":
        return VoicemailPolicy(action="off")
    return VoicemailPolicy.model_validate(call.voicemail_policy or {}, extra="ignore")


async def find_calls(session: ReadSession, query: CallQuery) -> Page[Call]:
    """Return one page of the calls that match a query, newest first.

    The total of common words is at most 10,000. Raises `InvalidState` for words of encrypted transcripts.
    """
    if query.transcript is None:
        return await paginate(session, queries.select_calls(session, query), lambda call: call, query)
    await _require_searchable(session)
    items, total = await queries.search_calls(session, query, query.transcript)
    return Page[Call].model_construct(items=items, total=total, limit=query.limit, offset=query.offset)


async def list_call_batch(
    session: ReadSession, query: CallFilters, *, after: TenantTable | None, limit: int
) -> tuple[list[Call], Call | None]:
    """Look at the next `limit` calls after `after`, newest first, and return those that match the query, and the last
    one looked at, or None at the end of the list. Raises `InvalidState` as `find_calls` does.

    Only those calls are looked at, however rare the words are, so that every batch is as fast.
    """
    rows = await queries.list_next_calls(session, query, after=after, limit=limit)
    await open_content(session, *rows)
    last = rows[-1] if len(rows) == limit else None
    if query.transcript is None:
        return list(rows), last
    await _require_searchable(session)
    ids = await queries.find_calls_with_words(session, rows, query.transcript)
    return [call for call in rows if call.id in ids], last


async def _require_searchable(session: ReadSession) -> None:
    if (await get_policy(session, session.organization_id)).encryption.texts:
        raise InvalidState("The organization's transcripts are encrypted and cannot be searched.")


async def wait_until_settled(
    database: Database, organization_id: UUID, carrier_call_id: str, *, seconds: float
) -> Call:
    """Wait until a call that a simulated caller placed has ended in the database, and return it. Raises `TimeoutError`
    if that takes longer.
    """
    async with asyncio.timeout(seconds):
        while True:
            async with database.read(organization_id) as session:
                found = await queries.find_simulated_call(session, carrier_call_id)
            if found is not None and found.ended_at is not None:
                return found
            await asyncio.sleep(POLL_SECONDS)


async def list_metadata_names(session: ReadSession, agent_id: UUID) -> list[str]:
    """List the names of the metadata of an agent's latest calls, which fill placeholders of its prompt."""
    latest = await queries.list_latest_calls(session, agent_id, most=NAMED_CALLS)
    await open_content(session, *latest)
    return sorted({name for call in latest for name in call.call_metadata.value})


async def get_transcript(session: ReadSession, call_id: UUID) -> Sequence[TranscriptLine]:
    """Return a call's transcript in order. Raises `NotFound`, also if retention has deleted the transcript."""
    call = await get_row(session, Call, call_id)
    if not call.has_transcript:
        raise NotFound("The transcript has been deleted.")
    lines = await queries.list_lines(session, [call])
    await open_content(session, *lines)
    return lines


async def read_transcript(session: WriteSession, call_id: UUID) -> Sequence[TranscriptLine]:
    """Return a call's transcript, and record in the audit log who reads it. Raises `NotFound`."""
    lines = await get_transcript(session, call_id)
    record_audit(session, AuditAction.TRANSCRIPT_READ, call_id)
    return lines


async def place_call(session: WriteSession, data: CallCreate, *, is_only: bool = False) -> Call:
    """Create a call to be placed; a job asks the carrier once this is committed. With `is_only` if the transaction
    starts no other call.

    Raises `ValidationFailed` for an agent or number that cannot be used, `InvalidState` for a paused agent,
    `InsufficientBalance`, and the refusals of `find_refusal` and of the organization's allowance.
    """
    agent = await agents.require_agent(session, data.agent_id)
    number = await numbers.require_number(session, data.from_number_id, field="from_number_id")
    if agent.status != "active":
        raise InvalidState("The agent is paused: it takes and places no calls.")
    refusal = await find_refusal(session, data.to_number)
    if refusal is not None:
        raise refusal
    call = await prepare_outbound_call(session, agent, number, data.to_number, metadata=data.metadata)
    # Written before the lock is taken, for which the organization's other calls wait. A refusal rolls it back.
    record_audit(session, AuditAction.CALL_CREATED, call.id, fields=data.model_fields_set)
    await add_outbound_call(session, call, await acquire_call_allowance(session, for_one=is_only))
    return call


async def prepare_outbound_call(
    session: WriteSession,
    agent: Agent,
    number: PhoneNumber,
    to_number: str,
    *,
    metadata: dict[str, JsonValue],
    voicemail_policy: dict[str, Any] | None = None,
) -> Call:
    """Return a call whose agent and numbers are valid, for `add_outbound_call`. Its metadata are redacted like the
    agent's conversations. Without a `voicemail_policy` the agent's applies.

    This is the part for which no other call of the organization has to wait.
    """
    kept, for_model = await (await open_redactor(session, agent)).search_and_redact_json(metadata)
    call = Call(
        organization_id=session.organization_id,
        agent_id=agent.id,
        phone_number_id=number.id,
        direction="outbound",
        from_number=number.phone_number,
        to_number=to_number,
        carrier=number.carrier,
        call_metadata=Content(kept),
        prompt_variables=Content(for_model if for_model != kept else None),
        voicemail_policy=voicemail_policy or agent.settings.voicemail_policy.model_dump(),
        watch_at=now(),
        cause_depth=session.cause_depth,
    )
    await seal_content(session, call)
    return call


async def add_outbound_call(session: WriteSession, call: Call, allowance: CallAllowance) -> None:
    """Save a prepared call to be placed, in the transaction that has acquired the organization's allowance.

    Raises the allowance's refusal and `InsufficientBalance` before anything is written.
    """
    if (refusal := allowance.find_refusal()) is not None:
        raise refusal
    await ledger.hold_call_minutes(session, call.id, 1)
    session.add(call)
    await allowance.count_outbound_call(session)
    link_call(call.id)
    session.wake("dial_call")
