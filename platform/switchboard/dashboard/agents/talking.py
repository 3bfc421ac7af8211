"""Talking to an agent from the browser: `static/js/talk.js` calls a number that the agent answers, over the platform's own socket."""

from uuid import UUID

from pydantic import BaseModel, Field
from quart import Response, jsonify
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.agents import service as agents
from switchboard.browser_calls import service as browser_calls
from switchboard.calls import live_tickets
from switchboard.calls import service as calls
from switchboard.conversation.call import Person
from switchboard.dashboard.blueprint import dashboard
from switchboard.dashboard.pages import action, page
from switchboard.dashboard.rendering import render
from switchboard.dashboard.visitor import Visitor
from switchboard.phone_numbers import service as numbers
from switchboard.runtime import current_runtime
from switchboard.web.errors import ApiError, InvalidState, NotFound

NO_CARRIER = "None of your carriers lets this page call: that needs the loopback carrier, which works without an account."
NO_NUMBER = "The agent answers no number of the loopback carrier. Give it one, then talk to it."


class Connected(BaseModel):
    """The call that the page began, as the carrier knows it."""

    carrier_call_id: str = Field(min_length=1, max_length=255)


@dashboard.get("/dashboard/agents/<agent_id>/talk")
@page()
async def talk_page(session: AsyncSession, agent_id: UUID) -> str:
    """The button, the levels, the transcript."""
    agent = await agents.get(session, agent_id)
    try:
        _, number = await _reached(session, agent_id)
    except InvalidState as refusal:
        return await render("dashboard/agents/talk.html", agent=agent, hindered=refusal.detail)
    return await render("dashboard/agents/talk.html", agent=agent, number=number)


@dashboard.post("/dashboard/agents/<agent_id>/talk")
@action()
async def begin_talking(session: AsyncSession, visitor: Visitor, agent_id: UUID) -> Response:
    """What the page needs for one call."""
    agent = await agents.get(session, agent_id)
    try:
        if agent.status != "active":
            raise InvalidState("The agent is paused: it takes and places no calls.")
        carrier, number = await _reached(session, agent_id)
        identity = f"user_{visitor.user.id.hex}"
        minted = await browser_calls.mint(current_runtime(), visitor.organization_id, carrier, identity=identity, platform="web")
    except ApiError as refusal:
        return _refused(refusal)
    return jsonify({"token": minted.token, "connection": minted.connection, "to_number": number})


@dashboard.post("/dashboard/agents/<agent_id>/talk/transcript")
@action(form=Connected)
async def follow_talk(session: AsyncSession, visitor: Visitor, agent_id: UUID, data: Connected) -> Response:
    """Where the page reads what is said, once its call was answered."""
    carrier = await browser_calls.own_socket_carrier(session, current_runtime().registry) or ""
    call = await calls.find_at_carrier(session, carrier, data.carrier_call_id)
    if call is None or call.agent_id != agent_id:
        raise NotFound
    try:
        ticket = await live_tickets.mint(current_runtime(), session, call.id, Person(visitor.user.id, visitor.user.email), "transcript")
    except ApiError as refusal:
        return _refused(refusal)
    return jsonify({"url": ticket.url, "call": f"/dashboard/calls/{call.id}"})


def _refused(refusal: ApiError) -> Response:
    answer = jsonify({"fault": refusal.detail})
    answer.status_code = refusal.status
    return answer


async def _reached(session: AsyncSession, agent_id: UUID) -> tuple[str, str]:
    """The carrier and the number by which a page reaches the agent. Raises `InvalidState` with what is missing."""
    carrier = await browser_calls.own_socket_carrier(session, current_runtime().registry)
    if carrier is None:
        raise InvalidState(NO_CARRIER)
    answered = (await numbers.answered_by(session, [agent_id]))[agent_id]
    number = next((number.phone_number for number in answered if number.carrier == carrier), None)
    if number is None:
        raise InvalidState(NO_NUMBER)
    return carrier, number
