"""The tools that every agent has: ending the call, transferring it, pressing keys, sending a text, not calling again. They ask; others do."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from switchboard.engine.conversation.call import TextSender
from switchboard.engine.conversation.handoff.transfer import TransferRequest
from switchboard.plugin_sdk import AgentTool, JsonObject, ProviderError, ToolContext, ToolError, ToolParameters


@dataclass(slots=True)
class AgentRequests:
    """What the agent wants done with the call once it has finished speaking."""

    hang_up: bool = False
    transfer: TransferRequest | None = None


class EndCall(AgentTool[ToolParameters]):
    """Ends the call."""

    name = "end_call"
    description = "End the call, after what you say with it (a goodbye) has been heard."

    def __init__(self, wishes: AgentRequests) -> None:
        self._wishes = wishes

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        self._wishes.hang_up = True
        return {"ended": True}


class TransferTo(ToolParameters):
    """Where to transfer the call."""

    to_number: Annotated[str, Field(pattern=r"^\+[1-9]\d{6,14}$", description="E.164 phone number, +15550100001")]
    introduction: str = Field(
        "",
        max_length=500,
        description="What is said to whoever answers there before they are connected: who calls and why. Empty: connect at once.",
    )


class TransferCall(AgentTool[TransferTo]):
    """Transfers the call."""

    name = "transfer_call"
    description = (
        "Connect the caller to another phone number; you then leave the call. Say so first. With an introduction the caller stays with you until "
        "the other side has heard it, and you are told if nobody answers."
    )
    Parameters = TransferTo

    def __init__(self, wishes: AgentRequests) -> None:
        self._wishes = wishes

    async def run(self, context: ToolContext, parameters: TransferTo) -> JsonObject:
        self._wishes.transfer = TransferRequest(parameters.to_number, parameters.introduction.strip())
        return {"transferring_to": parameters.to_number}


class DigitsToPress(ToolParameters):
    """Which keys to press."""

    digits: Annotated[str, Field(pattern=r"^[0-9*#w]{1,50}$", description="0-9, * and #; w waits half a second")]


class PressDigits(AgentTool[DigitsToPress]):
    """Presses keys."""

    name = "press_digits"
    description = "Press keys of the phone, for a menu that asks for them."
    Parameters = DigitsToPress

    def __init__(self, press: Callable[[str], Awaitable[None]]) -> None:
        """`press` raises `ProviderError` where the carrier does not press them."""
        self._press = press

    async def run(self, context: ToolContext, parameters: DigitsToPress) -> JsonObject:
        try:
            await self._press(parameters.digits)
        except ProviderError as error:
            raise ToolError(error.message) from error
        return {"pressed": parameters.digits}


class TextToSend(ToolParameters):
    """A text message."""

    body: Annotated[str, Field(min_length=1, max_length=1600, description="what the message says")]
    to_number: Annotated[str, Field(pattern=r"^\+[1-9]\d{6,14}$")] | None = Field(
        None, description="E.164 phone number, +15550100001; left out, it goes to the person on the line"
    )


class SendSms(AgentTool[TextToSend]):
    """Sends a text."""

    name = "send_sms"
    description = "Send a text message (SMS) to the person on the line, or to another phone number."
    Parameters = TextToSend

    def __init__(self, sender: TextSender) -> None:
        self._sender = sender

    async def run(self, context: ToolContext, parameters: TextToSend) -> JsonObject:
        await self._sender.send_text(parameters.body, parameters.to_number)
        return {"sent": True}


class OptOut(AgentTool[ToolParameters]):
    """Has the other party not called again."""

    name = "opt_out"
    description = "Note that the other party does not want to be called again. Use it whenever they say so, and tell them that it is done."

    def __init__(self, opt_out: Callable[[], Awaitable[None]]) -> None:
        """`opt_out` writes it down. Raises `ToolError` where that cannot be done."""
        self._opt_out = opt_out

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        await self._opt_out()
        return {"opted_out": True}
