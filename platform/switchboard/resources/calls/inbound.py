"""Answers to inbound calls: their routes, and the capacity for them.

Carriers may announce a call twice; the second announcement gets the same instruction.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

import structlog
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from switchboard.engine.conversation.call import EndedReason
from switchboard.foundation.database import Database, NewRow, TenantSession, insert_row, new_id, now
from switchboard.foundation.encryption.content import encrypt_row
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.traces import link_call
from switchboard.foundation.outbound import OutboundClient, OutboundError, signature_headers
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import (
    InsufficientBalance,
    Unavailable,
)
from switchboard.foundation.web.schemas import Destination, parse_id
from switchboard.plugin_sdk import ConnectMedia, ForwardCall, IncomingCall, Instruction, RejectCall
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.redaction import open_redactor
from switchboard.resources.billing import ledger
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.allowance import CallAdmission, acquire_call_allowance, pause_at_call_limits
from switchboard.resources.calls.dialing import build_media_url
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.routing import CallAnnouncement, Route, read_announcement, route_to_agent
from switchboard.resources.calls.schemas import MAX_METADATA_CHARACTERS, MAX_METADATA_KEYS
from switchboard.resources.calls.states import (
    FORWARDED_TIMEOUT,
    MEDIA_TIMEOUT,
    finish_call,
    is_over,
    refuse_call,
    start_call,
)
from switchboard.resources.destinations.clients import build_carrier_destination, find_transfer_refusal
from switchboard.resources.phone_numbers import service as numbers

logger = structlog.get_logger()
WEBHOOK_SECONDS = 5.0
BALANCE_TOO_LOW = "The organization's balance does not cover the call."
MAX_WEBHOOK_RESPONSE_BYTES = 65_536
NO_CAPACITY = "All servers hold as many calls as they can."
RETRY_SECONDS = 5


class WebhookDecision(BaseModel):
    """Response of a number's `forward_webhook_url` (docs/decisions/0008-schedules-and-calling-hours.md)."""

    model_config = ConfigDict(extra="ignore")

    action: Literal["agent", "forward", "hangup"]
    agent_id: str | None = None
    number: Destination | None = None


@dataclass(frozen=True, slots=True)
class InboundCallRouter:
    """Decides what becomes of inbound calls."""

    settings: Settings
    database: Database
    keyring: KeyRing
    registry: Registry
    outbound: OutboundClient
    admission: CallAdmission

    async def answer_inbound_call(
        self, organization_id: UUID, carrier: str, incoming: IncomingCall, *, agent_id: UUID | None = None
    ) -> Instruction:
        """Decide what becomes of the call, record it, and return the instruction for the carrier.

        `agent_id` is the agent that the caller asked for instead of a number. Raises `Unavailable`, and records
        nothing, if no server has capacity for the call: the carrier asks again, or asks its fallback.
        """
        async with self.database.tenant(organization_id) as session:
            announcement = await read_announcement(session, carrier, incoming, agent_id=agent_id)
            announced = await find_announced_call(session, carrier, incoming) if announcement.is_repeated else None
        if announced is not None:
            return self._build_instruction(announced)
        route = announcement.route
        if route.webhook_of is not None:  # no transaction waits for it
            route = await self._ask_webhook(organization_id, route.webhook_of, incoming)
        call_id = new_id()
        has_place = not route.is_answered or await self.admission.reserve_place(call_id)
        async with self.database.tenant(organization_id) as session:
            route = await self._check_route(session, carrier, incoming, route, has_place=has_place)
            announcement = replace(announcement, route=route)
            call = await _create_call(session, carrier, incoming, announcement, call_id=call_id)
        if call is None:
            return self._connect_media(carrier, organization_id, call_id)
        if call.id != call_id or is_over(call):
            await self.admission.release_place(call_id)
        return self._build_instruction(call)

    async def _check_route(
        self, session: TenantSession, carrier: str, incoming: IncomingCall, route: Route, *, has_place: bool
    ) -> Route:
        """Return the route, or a refusal if the organization has too many calls, or may not forward this one.

        Raises `Unavailable`.
        """
        if not route.is_answered:
            return await self._check_forward(session, carrier, route)
        refusal = (await acquire_call_allowance(session)).find_capacity_refusal()
        if refusal is not None:
            return Route(agent_id=route.agent_id, refused=refusal.detail, busy=True)
        # Another process may have found a place for the same announcement.
        if not has_place and await find_announced_call(session, carrier, incoming) is None:
            metrics.calls_not_admitted.labels("inbound").inc()
            logger.warning("inbound call answered with 503: no server has capacity")
            raise Unavailable(NO_CAPACITY, headers={"Retry-After": str(RETRY_SECONDS)})
        return route

    async def _check_forward(self, session: TenantSession, carrier: str, route: Route) -> Route:
        """Return the route, or a refusal if it forwards the call to where it may not, or cannot, go now."""
        if route.forward_to is None:
            return route
        refusal = await find_transfer_refusal(session, self.registry, carrier, route.forward_to)
        if refusal is None:
            return route
        logger.warning("inbound call not forwarded", reason=refusal.detail)
        return Route(refused=f"The call was not forwarded. {refusal.detail}")

    def _build_instruction(self, call: Call) -> Instruction:
        if is_over(call):
            is_unknown = call.phone_number_id is None and call.agent_id is None
            return RejectCall("busy" if call.status == "busy" else "rejected", unknown_number=is_unknown)
        if call.transferred_to is not None:
            return ForwardCall(
                build_carrier_destination(call.organization_id, call.transferred_to),
                caller_id=calls.choose_caller_id(call, call.transferred_to),
            )
        return self._connect_media(call.carrier, call.organization_id, call.id)

    def _connect_media(self, carrier: str, organization_id: UUID, call_id: UUID) -> ConnectMedia:
        url = build_media_url(
            self.settings, self.keyring, carrier=carrier, organization_id=organization_id, call_id=call_id
        )
        return ConnectMedia(url)

    async def _ask_webhook(self, organization_id: UUID, number_id: UUID, incoming: IncomingCall) -> Route:
        async with self.database.tenant(organization_id) as session:
            number = await numbers.get_phone_number(session, number_id)
        body = (
            _WebhookQuestion(from_number=incoming.from_number, to_number=incoming.to_number, phone_number_id=number.id)
            .model_dump_json()
            .encode()
        )
        secret = self.keyring.decrypt(number.forward_webhook_secret or "", numbers.get_webhook_secret_label(number))
        try:
            reply = await self.outbound.post(
                number.forward_webhook_url or "",
                body,
                headers=signature_headers(body, secret),
                seconds=WEBHOOK_SECONDS,
                read_limit=MAX_WEBHOOK_RESPONSE_BYTES,
            )
            if not 200 <= reply.status < 300:
                return Route(refused=f"The number's webhook answered {reply.status}.")
            decision = WebhookDecision.model_validate_json(reply.body)
        except OutboundError as error:
            return Route(refused=f"The number's webhook could not be asked: {error}")
        except ValidationError:
            return Route(refused="The number's webhook gave an answer that is not understood.")
        if decision.action == "agent":
            agent_id = parse_id(decision.agent_id or "") or number.inbound_agent_id
            async with self.database.tenant(number.organization_id) as session:
                return await route_to_agent(session, agent_id)
        if decision.action == "forward" and (target := decision.number or number.forward_number):
            return Route(forward_to=target)
        return Route(refused="The number's webhook refused the call.")


async def find_announced_call(session: TenantSession, carrier: str, incoming: IncomingCall) -> Call | None:
    """Return the call if the carrier announced it before."""
    return await calls.find_call_by_carrier_id(session, carrier, incoming.carrier_call_id)


async def _create_call(
    session: TenantSession,
    carrier: str,
    incoming: IncomingCall,
    announcement: CallAnnouncement,
    *,
    call_id: UUID,
) -> Call | None:
    """Record a call. Return it, or None if it waits for its media socket, which needs no object of the table.

    The carrier may announce the call twice at once, to two processes. The second process returns the first one's call.
    """
    route = announcement.route
    kept, for_model = await _redact_metadata(session, route, _limit_metadata(incoming.metadata))
    row = NewRow.build(
        Call,
        id=call_id,
        organization_id=session.organization_id,
        agent_id=route.agent_id,
        phone_number_id=announcement.number_id,
        direction="inbound",
        status="ringing",
        from_number=incoming.from_number,
        to_number=incoming.to_number,
        carrier=carrier,
        carrier_call_id=incoming.carrier_call_id,
        voicemail=route.voicemail,
        call_metadata=kept,
        prompt_variables=for_model if for_model != kept else None,
        transferred_to=route.forward_to,
        watch_at=now() + MEDIA_TIMEOUT,
        cause_depth=announcement.cause_depth,
    )
    if not await insert_row(session, await encrypt_row(session, row)):
        return await find_announced_call(session, carrier, incoming)
    link_call(call_id)
    refusal = await find_balance_refusal(session, call_id) if route.refused is None else None
    if refusal is None and route.is_answered:
        return None
    call = await calls.get_call(session, call_id)
    if refusal is not None:
        logger.warning(
            "inbound call refused: the balance does not cover it",
            call_id=str(call.id),
            organization_id=str(call.organization_id),
        )
        await refuse_call(session, call, refusal)
    elif route.refused is not None:
        await finish_call(session, call, "busy" if route.busy else "failed", error=route.refused)
    elif route.forward_to is not None:
        await start_call(session, call)
        call.ended_reason, call.watch_at = EndedReason.TRANSFERRED.value, now() + FORWARDED_TIMEOUT
        await pause_at_call_limits(session)
    return call


async def _redact_metadata(
    session: TenantSession, route: Route, metadata: dict[str, JsonValue]
) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    """Redact metadata like the agent's conversations; return what is stored, and what the model may see."""
    agent = await session.find(Agent, route.agent_id) if metadata and route.agent_id else None
    if agent is None:
        return metadata, metadata
    redactor = await open_redactor(session, agent)
    await redactor.search_json(metadata)
    return await redactor.redact_json(metadata, for_model=False), await redactor.redact_json(metadata, for_model=True)


def _limit_metadata(given: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return what fits into a call's metadata of what the caller's network sent."""
    kept: dict[str, JsonValue] = {}
    left = MAX_METADATA_CHARACTERS
    for name, value in list(given.items())[:MAX_METADATA_KEYS]:
        left -= len(name) + len(value)
        if left < 0:
            break
        kept[name] = value
    return kept


async def find_balance_refusal(session: TenantSession, call_id: UUID) -> InsufficientBalance | None:
    """Hold funds for the call's first minute; return an error if the balance does not cover it."""
    try:
        await ledger.hold_call_minutes(session, call_id, 1)
    except InsufficientBalance:
        return InsufficientBalance(BALANCE_TOO_LOW)
    return None


class _WebhookQuestion(BaseModel):
    from_number: str
    to_number: str
    phone_number_id: UUID
    direction: Literal["inbound"] = "inbound"
