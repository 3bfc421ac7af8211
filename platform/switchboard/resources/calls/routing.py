"""Routes of inbound calls, by phone number, schedule, and agent."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Select, and_, bindparam, exists, func, inspect, or_, select

from switchboard.foundation.database import ReadValue, TenantSession, now
from switchboard.foundation.encryption.content import get_table
from switchboard.foundation.web.errors import OrganizationSuspended
from switchboard.plugin_sdk import IncomingCall
from switchboard.resources.agents.models import Agent
from switchboard.resources.calls.models import Call
from switchboard.resources.identity.models import Organization
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.schedule import Schedule, is_open
from switchboard.resources.phone_numbers.service import OURS

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
    session: TenantSession, carrier: str, incoming: IncomingCall, *, agent_id: UUID | None
) -> CallAnnouncement:
    """Find the route of a call, by one statement. `agent_id` is the agent that the caller asked for, if any."""
    values: dict[str, ReadValue] = {
        "organization_id": session.organization_id,
        "carrier": carrier,
        "carrier_call_id": incoming.carrier_call_id,
        "from_number": incoming.from_number,
        "to_number": incoming.to_number,
    }
    if agent_id is not None:
        values["agent_id"] = agent_id
    (row,) = await session.read(_select_announcement(names_agent=agent_id is not None), values)
    route = _route_to_agent(row) if agent_id is not None else _route_to_number(row)
    if row["is_suspended"]:
        route = Route(refused=OrganizationSuspended.default_detail)
    return CallAnnouncement(row["is_repeated"], row["number_id"], row["cause_depth"], route)


async def route_to_agent(session: TenantSession, agent_id: UUID | None) -> Route:
    """Return the route to an agent, which is refused if the agent is paused or deleted."""
    agent = await session.find(Agent, agent_id) if agent_id else None
    if agent is None or agent.status != "active":
        return Route(refused=NO_AGENT)
    return Route(agent_id=agent.id)


def _route_to_number(row: dict[str, Any]) -> Route:
    if row["number_id"] is None:
        return Route(refused="The called number is not one of the organization's.")
    schedule = Schedule.model_validate(row["schedule"]) if row["schedule"] else None
    if schedule is None or is_open(schedule, now()):
        return _route_to_agent(row)
    if schedule.outside_action == "voicemail":
        return _route_to_agent(row, voicemail=True)
    if schedule.outside_action == "forward" and row["forward_number"]:
        return Route(forward_to=row["forward_number"])
    if schedule.outside_action == "webhook" and row["forward_webhook_url"]:
        return Route(webhook_of=row["number_id"])
    return Route(refused="The call came outside the number's opening hours.")


def _route_to_agent(row: dict[str, Any], *, voicemail: bool = False) -> Route:
    if row["agent_status"] != "active":
        return Route(refused=NO_AGENT)
    return Route(agent_id=row["agent_id"], voicemail=voicemail)


@cache
def _select_announcement(*, names_agent: bool) -> Select[Any]:
    """Select the organization, with the number that was called, and its agent or the one that was asked for."""
    organization = inspect(Organization).local_table
    call, number, agent = get_table(Call), get_table(PhoneNumber), get_table(Agent)
    ours = organization.c.id
    announced = select(call.c.id).where(
        call.c.organization_id == ours,
        call.c.carrier == bindparam("carrier"),
        call.c.carrier_call_id == bindparam("carrier_call_id"),
    )
    placed = select(call.c.cause_depth).where(
        call.c.organization_id == ours,
        call.c.direction == "outbound",
        call.c.ended_at.is_(None),
        call.c.from_number == bindparam("from_number"),
        call.c.to_number == bindparam("to_number"),
    )
    is_number = and_(
        number.c.organization_id == ours,
        number.c.phone_number == bindparam("to_number"),
        or_(*(number.c.status == status for status in OURS)),
    )
    wanted = bindparam("agent_id", type_=agent.c.id.type) if names_agent else number.c.inbound_agent_id
    return (
        select(
            exists(announced).label("is_repeated"),
            organization.c.suspended_at.is_not(None).label("is_suspended"),
            func.coalesce(placed.order_by(call.c.created_at.desc()).limit(1).scalar_subquery(), 0).label("cause_depth"),
            number.c.id.label("number_id"),
            number.c.schedule,
            number.c.forward_number,
            number.c.forward_webhook_url,
            agent.c.id.label("agent_id"),
            agent.c.status.label("agent_status"),
        )
        .select_from(organization)
        .outerjoin(number, is_number)
        .outerjoin(agent, and_(agent.c.organization_id == ours, agent.c.id == wanted))
        .where(ours == bindparam("organization_id"))
    )
