"""Built-in tools of every agent: end or transfer the call, press keys, send text messages, and opt out.

The tools only record or pass on the agent's requests; the call's session carries them out.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.engine.conversation.call import CallAgent, EndedReason, LiveCall, PersonQueue, Tool
from switchboard.engine.conversation.knowledge import SearchKnowledge
from switchboard.plugin_sdk import (
    CLIENT_PREFIX,
    AgentTool,
    JsonObject,
    ProviderError,
    ToolContext,
    ToolError,
    ToolParameters,
)

# Phone numbers and clients that an agent's model may choose (docs/decisions/0034-destinations.md).
#
# A caller can talk a model into anything. So a model transfers calls and sends text messages only to numbers, and
# transfers calls only to clients, that the agent's configuration names.

WRITTEN_NUMBER = re.compile(r"\+[1-9](?:[ ().-]{0,2}\d){6,14}(?!\d)")
"""A number with its country code, as people write it."""
WRITTEN_CLIENT = re.compile(r"(?<!\w)" + CLIENT_PREFIX + r"[A-Za-z0-9_]{1,50}(?!\w)")
"""A client that calls can be transferred to."""


def check_number(agent: AgentSettings, number: str) -> None:
    """Raise `ToolError` for a number in E.164, or a client, that the agent's model may not choose.

    It may choose those of `allowed_numbers` and of the prompt, without what a call's metadata puts into the prompt.
    """
    written = (re.sub(r"[^+\d]", "", text) for text in WRITTEN_NUMBER.findall(agent.system_prompt))
    named = (*agent.allowed_numbers, *written, *WRITTEN_CLIENT.findall(agent.system_prompt))
    if not agent.any_number and number not in named:
        raise ToolError(f"{number} is not one of the numbers that you may use: say that you cannot do that")


class TransferTo(ToolParameters):
    """Parameters of `transfer_call`."""

    to_number: Annotated[
        str,
        Field(
            pattern=r"^(\+[1-9]\d{6,14}|client:[A-Za-z0-9_]{1,50})$",
            description="E.164 phone number, +15550100001, or a client, client:reception",
        ),
    ]
    introduction: str = Field(
        "",
        max_length=500,
        description=(
            "What is said to whoever answers there before they are connected: who calls and why. "
            "Empty: connect at once."
        ),
    )


@dataclass(slots=True)
class AgentRequests:
    """Requests to be carried out once the agent has finished speaking: a transfer, the end of the call, or, with a
    reason, a person who takes over.
    """

    ending: EndedReason | None = None
    transfer: TransferTo | None = None
    person: str | None = None


class EndCall(AgentTool[ToolParameters]):
    """Ends the call."""

    name = "end_call"
    description = "End the call, after what you say with it (a goodbye) has been heard."

    def __init__(self, requests: AgentRequests) -> None:
        self._requests = requests

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        self._requests.ending = EndedReason.AGENT_HUNG_UP
        return {"ended": True}


class TransferCall(AgentTool[TransferTo]):
    """Transfers the call."""

    name = "transfer_call"
    description = (
        "Connect the caller to another phone number, or to a client; you then leave the call. Say so first. "
        "With an introduction the caller stays with you until the other side has heard it, "
        "and you are told if nobody answers."
    )
    Parameters = TransferTo

    def __init__(self, requests: AgentRequests, agent: AgentSettings) -> None:
        self._requests = requests
        self._agent = agent

    async def run(self, context: ToolContext, parameters: TransferTo) -> JsonObject:
        check_number(self._agent, parameters.to_number)
        self._requests.transfer = parameters
        return {"transferring_to": parameters.to_number}


class PersonReason(ToolParameters):
    """Parameters of `ask_for_person`."""

    reason: Annotated[str, Field(max_length=300)] = Field(
        "", description="for the person who answers: who calls and what they need, in one sentence"
    )


class AskForPerson(AgentTool[PersonReason]):
    """Lets the caller wait for a person."""

    name = "ask_for_person"
    description = (
        "Let the caller wait for a colleague who takes the call over, if they ask for a person or you cannot help. "
        "Say so with it. You are told if nobody is available, or if nobody comes."
    )
    Parameters = PersonReason

    def __init__(self, requests: AgentRequests, queue: PersonQueue) -> None:
        self._requests = requests
        self._queue = queue

    async def run(self, context: ToolContext, parameters: PersonReason) -> JsonObject:
        if not await self._queue.is_staffed():
            raise ToolError("nobody is available now: say so, and offer a callback or to take a message")
        self._requests.person = parameters.reason.strip()
        return {"waiting": True}


class NoteCallback(AgentTool[PersonReason]):
    """Notes that the caller wants to be called back."""

    name = "note_callback"
    description = "Note that a colleague is to call the caller back at the number they call from."
    Parameters = PersonReason

    def __init__(self, queue: PersonQueue) -> None:
        self._queue = queue

    async def run(self, context: ToolContext, parameters: PersonReason) -> JsonObject:
        await self._queue.join(parameters.reason.strip())
        if not await self._queue.leave(callback=True):
            raise ToolError("the caller's number is withheld")
        return {"noted": True}


class DigitsToPress(ToolParameters):
    """Parameters of `press_digits`."""

    digits: Annotated[str, Field(pattern=r"^[0-9*#w]{1,50}$", description="0-9, * and #; w waits half a second")]


class PressDigits(AgentTool[DigitsToPress]):
    """Presses keys."""

    name = "press_digits"
    description = "Press keys of the phone, for a menu that asks for them."
    Parameters = DigitsToPress

    def __init__(self, press: Callable[[str], Awaitable[None]]) -> None:
        """Use `press`, which raises `ProviderError` if the carrier does not press the keys."""
        self._press = press

    async def run(self, context: ToolContext, parameters: DigitsToPress) -> JsonObject:
        try:
            await self._press(parameters.digits)
        except ProviderError as error:
            raise ToolError(error.message) from error
        return {"pressed": parameters.digits}


class TextToSend(ToolParameters):
    """Parameters of `send_sms`."""

    body: Annotated[str, Field(min_length=1, max_length=1600, description="what the message says")]
    to_number: Annotated[str, Field(pattern=r"^\+[1-9]\d{6,14}$")] | None = Field(
        None, description="E.164 phone number, +15550100001; left out, it goes to the person on the line"
    )


class SendTextMessage(AgentTool[TextToSend]):
    """Sends a text message."""

    name = "send_sms"
    description = "Send a text message (SMS) to the person on the line, or to another phone number."
    Parameters = TextToSend

    def __init__(self, send: Callable[[str, str | None], Awaitable[None]], agent: AgentSettings) -> None:
        """Use `send`, which takes the text, and the number if it is not the other party's. It raises `ToolError`."""
        self._send = send
        self._agent = agent

    async def run(self, context: ToolContext, parameters: TextToSend) -> JsonObject:
        if (number := parameters.to_number) is not None and number not in (context.from_number, context.to_number):
            check_number(self._agent, number)
        await self._send(parameters.body, number)
        return {"sent": True}


class OptOut(AgentTool[ToolParameters]):
    """Adds the other party to the do-not-call list."""

    name = "opt_out"
    description = (
        "Note that the other party does not want to be called again. "
        "Use it whenever they say so, and tell them that it is done."
    )

    def __init__(self, opt_out: Callable[[], Awaitable[None]]) -> None:
        """Use `opt_out`, which raises `ToolError` if the entry cannot be added."""
        self._opt_out = opt_out

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        await self._opt_out()
        return {"opted_out": True}


def build_call_tools(
    call: LiveCall, agent: CallAgent, requests: AgentRequests, press_digits: Callable[[str], Awaitable[None]]
) -> list[Tool]:
    """Return the tools that an agent has in a call, its own included."""
    tools: list[Tool] = [
        EndCall(requests),
        TransferCall(requests, agent.settings),
        PressDigits(press_digits),
        *agent.tools,
    ]
    if call.queue is not None and (agent.settings.queue_wait_seconds is not None or call.begins_with_person):
        tools += [AskForPerson(requests, call.queue), NoteCallback(call.queue)]
    return tools if agent.knowledge is None else [*tools, SearchKnowledge(agent.knowledge)]
