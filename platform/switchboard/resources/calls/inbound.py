"""Answers to inbound calls: their routes, and the capacity for them.

Carriers may announce a call twice; the second announcement gets the same instruction.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal
from uuid import UUID

import structlog
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError
from sqlalchemy import Row

from switchboard.engine.conversation.call import EndedReason
from switchboard.foundation.database import Database, ReadSession, WriteSession, new_id, now
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.traces import link_call
from switchboard.foundation.outbound import OutboundClient, OutboundError, signature_headers
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import (
    InsufficientBalance,
    OrganizationMoving,
    OrganizationSuspended,
    Unavailable,
)
from switchboard.foundation.web.schemas import Destination, parse_id
from switchboard.plugin_sdk import ConnectMedia, ForwardCall, IncomingCall, Instruction, RejectCall
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.redaction import open_redactor
from switchboard.resources.billing import ledger
from switchboard.resources.calls import queries
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.allowance import ANNOUNCEMENTS_TURN, acquire_call_allowance
from switchboard.resources.calls.dialing import build_media_url
from switchboard.resources.calls.media_servers import PUBLIC, MediaServers
from switchboard.resources.calls.models import Call
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
from switchboard.resources.destinations.service import pause_at_limits
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.queries import add_reference
from switchboard.resources.phone_numbers.schedule import Schedule, is_open

logger = structlog.get_logger()
WEBHOOK_SECONDS = 5.0
BALANCE_TOO_LOW = "The organization's balance does not cover the call."
MAX_WEBHOOK_RESPONSE_BYTES = 65_536
NO_CAPACITY = "All servers hold as many calls as they can."
RETRY_SECONDS = 5


NO_AGENT: Final = "No agent answers this number."


@dataclass(frozen=True, slots=True)
class Route:
    """Route of a call: an agent answers it, it is forwarded, it is recorded (`voicemail`), the webhook of a number
    decides (`webhook_of`), or it is refused with a reason.
    """

    agent_id: UUID | None = None
    forward_to: str | None = None
    voicemail: bool = False
    webhook_of: UUID | None = None
    refused: str | None = None
    busy: bool = False

    @property
    def is_answered(self) -> bool:
        """Return whether an agent answers the call."""
        return self.agent_id is not None and self.refused is None


@dataclass(frozen=True, slots=True)
class CallAnnouncement:
    """An inbound call as it is announced: its route, the organization's number, and whether it was announced before.

    `cause_depth` is the length of the automation chain behind the call. A call from one of our own numbers continues
    the chain of the outbound call, so that automations cannot start each other without end by way of the carrier.
    """

    is_repeated: bool
    number_id: UUID | None
    cause_depth: int
    route: Route


async def read_announcement(
    session: ReadSession, carrier: str, incoming: IncomingCall, *, agent_id: UUID | None
) -> CallAnnouncement:
    """Find the route of a call, by one statement. `agent_id` is the agent that the caller asked for, if any."""
    row = await queries.read_route_columns(session, carrier, incoming, agent_id=agent_id)
    route = _route_to_number(row) if agent_id is None else _route_to_agent(row.agent_id, row.agent_status)
    if row.is_suspended:
        route = Route(refused=OrganizationSuspended.default_detail)
    elif row.is_moving:
        route = Route(refused=OrganizationMoving.default_detail)
    return CallAnnouncement(row.is_repeated, row.number_id, row.cause_depth, route)


def _route_to_number(row: Row[*tuple[Any, ...]]) -> Route:
    if row.number_id is None:
        return Route(refused="The called number is not one of the organization's.")
    schedule = Schedule.model_validate(row.schedule) if row.schedule else None
    if schedule is None or is_open(schedule, now()):
        return _route_to_agent(row.agent_id, row.agent_status)
    if schedule.outside_action == "voicemail":
        return _route_to_agent(row.agent_id, row.agent_status, voicemail=True)
    if schedule.outside_action == "forward" and row.forward_number:
        return Route(forward_to=row.forward_number)
    if schedule.outside_action == "webhook" and row.forward_webhook_url:
        return Route(webhook_of=row.number_id)
    return Route(refused="The call came outside the number's opening hours.")


def _route_to_agent(agent_id: UUID, status: str | None, *, voicemail: bool = False) -> Route:
    """Return the route to an agent, which is refused if the agent is paused or deleted."""
    return Route(agent_id=agent_id, voicemail=voicemail) if status == "active" else Route(refused=NO_AGENT)


class WebhookDecision(BaseModel):
    """Response of a number's `forward_webhook_url` (docs/decisions/0008-schedules-and-calling-hours.md)."""

    model_config = ConfigDict(extra="ignore")

    action: Literal["agent", "forward", "hangup"]
    agent_id: str | None = None
    number: Destination | None = None


@dataclass(frozen=True, slots=True)
class InboundCallRouter:
    settings: Settings
    database: Database
    keyring: KeyRing
    registry: Registry
    outbound: OutboundClient
    media_servers: MediaServers

    async def answer_inbound_call(
        self, organization_id: UUID, carrier: str, incoming: IncomingCall, *, agent_id: UUID | None = None
    ) -> Instruction:
        """Decide what becomes of the call, record it, and return the instruction for the carrier.

        `agent_id` is the agent that the caller asked for instead of a number. Raises `Unavailable`, and records
        nothing, if no server has capacity for the call: the carrier asks again, or asks its fallback.
        """
        async with self.database.read(organization_id) as session:
            announcement = await read_announcement(session, carrier, incoming, agent_id=agent_id)
            if announcement.is_repeated:
                announced = await queries.find_call_by_carrier_id(session, carrier, incoming.carrier_call_id)
                if announced is not None:
                    return self._build_instruction(announced)
        route = announcement.route
        if route.webhook_of is not None:  # no transaction waits for it
            route = await self._ask_webhook(organization_id, route.webhook_of, incoming)
        call_id = new_id()
        address = await self.media_servers.reserve_place_here(call_id) if route.is_answered else PUBLIC
        async with self.database.write_in_turn(organization_id, ANNOUNCEMENTS_TURN) as session:
            route = await self._check_route(session, carrier, incoming, route, has_place=address is not None)
            announcement = replace(announcement, route=route)
            call = await _create_call(session, carrier, incoming, announcement, call_id=call_id)
        if call is None:
            return self._connect_media(carrier, organization_id, call_id, address or PUBLIC)
        if call.id != call_id or is_over(call):
            await self.media_servers.release_place(call_id)
        return self._build_instruction(call)

    async def _check_route(
        self, session: WriteSession, carrier: str, incoming: IncomingCall, route: Route, *, has_place: bool
    ) -> Route:
        """Return the route, or a refusal if the organization has too many calls, or cannot forward this one.

        Raises `Unavailable`.
        """
        if route.forward_to is not None:
            unreachable = await find_transfer_refusal(session, self.registry, carrier, route.forward_to)
            if unreachable is not None:
                logger.warning("inbound call not forwarded", reason=unreachable.detail)
                return Route(refused=f"The call was not forwarded. {unreachable.detail}")
        if not route.is_answered:
            return route
        refusal = (await acquire_call_allowance(session)).find_capacity_refusal()
        if refusal is not None:
            return Route(agent_id=route.agent_id, refused=refusal.detail, busy=True)
        # Another process may have found a place for the same announcement.
        is_admitted = (
            has_place or await queries.find_call_by_carrier_id(session, carrier, incoming.carrier_call_id) is not None
        )
        if not is_admitted:
            metrics.calls_not_admitted.labels("inbound").inc()
            logger.warning("inbound call answered with 503: no server has capacity")
            raise Unavailable(NO_CAPACITY, headers={"Retry-After": str(RETRY_SECONDS)})
        return route

    def _build_instruction(self, call: Call) -> Instruction:
        if is_over(call):
            is_unknown = call.phone_number_id is None and call.agent_id is None
            return RejectCall("busy" if call.status == "busy" else "rejected", unknown_number=is_unknown)
        if call.transferred_to is not None:
            return ForwardCall(
                build_carrier_destination(call.organization_id, call.transferred_to),
                caller_id=calls.choose_caller_id(call, call.transferred_to),
            )
        # Announced again, perhaps because the server that answered before has died.
        return self._connect_media(call.carrier, call.organization_id, call.id, self.media_servers.address_here)

    def _connect_media(self, carrier: str, organization_id: UUID, call_id: UUID, address: str) -> ConnectMedia:
        url = build_media_url(
            self.settings,
            self.keyring,
            carrier=carrier,
            organization_id=organization_id,
            call_id=call_id,
            address=address,
        )
        return ConnectMedia(url)

    async def _ask_webhook(self, organization_id: UUID, number_id: UUID, incoming: IncomingCall) -> Route:
        async with self.database.read(organization_id) as session:
            number = await numbers.get_phone_number(session, number_id)
        numbers_of_call = {"from_number": incoming.from_number, "to_number": incoming.to_number}
        body = json.dumps({**numbers_of_call, "phone_number_id": str(number.id), "direction": "inbound"}).encode()
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
            async with self.database.read(organization_id) as session:
                agent = await session.find(Agent, agent_id)
            return _route_to_agent(agent.id, agent.status) if agent is not None else Route(refused=NO_AGENT)
        if decision.action == "forward" and (target := decision.number or number.forward_number):
            return Route(forward_to=target)
        return Route(refused="The number's webhook refused the call.")


async def _create_call(
    session: WriteSession,
    carrier: str,
    incoming: IncomingCall,
    announcement: CallAnnouncement,
    *,
    call_id: UUID,
) -> Call | None:
    """Record a call. Return it, or None if it waits for its media socket.

    The carrier may announce the call twice at once, to two processes. The second process returns the first one's call.
    """
    route = announcement.route
    kept, for_model = await _redact_metadata(session, route, _limit_metadata(incoming.metadata))
    call = Call(
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
        call_metadata=Content(kept),
        prompt_variables=Content(for_model if for_model != kept else None),
        transferred_to=route.forward_to,
        watch_at=now() + MEDIA_TIMEOUT,
        cause_depth=announcement.cause_depth,
    )
    await seal_content(session, call)
    if not await add_reference(session, "call", carrier, incoming.carrier_call_id, call_id):
        return await queries.find_call_by_carrier_id(session, carrier, incoming.carrier_call_id)
    session.add(call)
    link_call(call_id)
    refusal = await find_balance_refusal(session, call_id) if route.refused is None else None
    if refusal is None and route.is_answered:
        return None
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
        await pause_at_limits(session, "calls_per_hour", "minutes_per_hour")
    return call


async def _redact_metadata(
    session: ReadSession, route: Route, metadata: dict[str, JsonValue]
) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    """Redact metadata like the agent's conversations; return what is stored, and what the model may see."""
    agent = await session.find(Agent, route.agent_id) if metadata else None
    if agent is None:
        return metadata, metadata
    return await (await open_redactor(session, agent)).search_and_redact_json(metadata)


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


async def find_balance_refusal(session: WriteSession, call_id: UUID) -> InsufficientBalance | None:
    """Hold funds for the call's first minute; return an error if the balance does not cover it."""
    try:
        await ledger.hold_call_minutes(session, call_id, 1)
    except InsufficientBalance:
        return InsufficientBalance(BALANCE_TOO_LOW)
    return None
