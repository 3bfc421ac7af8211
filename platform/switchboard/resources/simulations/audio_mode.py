"""Mode `audio`: a real call over a carrier that can simulate callers, with everything that a call does and costs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk import CallProgress, SimulatedCall, SimulatedCarrier, SpokenLine, TelephonyProvider
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents.models import Agent, Simulation
from switchboard.resources.agents.tool_tests import CALLER
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.calls.service import wait_until_settled
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.resources.simulations import service as simulations
from switchboard.resources.simulations.result import RecordedToolCall, SimulatedConversation, SimulationError, Utterance
from switchboard.resources.simulations.schemas import EndedBy

SETTLE_SECONDS = 15.0
ENDED_BY: dict[str, EndedBy] = {
    "caller_hung_up": "caller",
    "agent_hung_up": "agent",
    "silence": "agent",
    "transferred": "transfer",
    "taken_over": "transfer",
    "max_duration": "limit",
}


@dataclass(frozen=True, slots=True)
class AudioMode:
    settings: Settings
    database: Database
    registry: Registry
    providers: Providers

    async def hold_conversation(self, simulation: Simulation, agent: Agent, played: SimulatedConversation) -> None:
        """Call one of the agent's numbers and say the lines; `played` holds the call even if it fails.

        Raises `ProviderError`, and `SimulationError` for a call that was not answered or failed.
        """
        async with self.database.read(simulation.organization_id) as session:
            number = await simulations.find_simulated_number(session, self.registry, agent.id)
        if number is None:
            raise SimulationError("the agent no longer answers a number whose carrier can simulate callers")
        rung = await self._ring(simulation, number, played)
        if not rung.answered:
            raise SimulationError(f"the call was not answered: {rung.refused_reason}")
        try:
            call = await wait_until_settled(
                self.database, simulation.organization_id, rung.carrier_call_id, seconds=SETTLE_SECONDS
            )
        except TimeoutError:
            raise SimulationError("the call was not saved completely in time") from None
        async with self.database.read(simulation.organization_id) as session:
            _read(call, await calls.get_transcript(session, call.id), played)
        cut_short = rung.hung_up_by == "limit" or len(simulation.lines) > simulation.max_turns
        if cut_short and played.ended_by == "caller":
            played.ended_by = "limit"

    async def _ring(self, simulation: Simulation, number: PhoneNumber, played: SimulatedConversation) -> SimulatedCall:
        def note(progress: CallProgress) -> None:
            if progress.line is not None:
                played.add("user", simulation.lines[progress.line - 1])

        async with self.providers.use(simulation.organization_id, TelephonyProvider, number.carrier) as carrier:
            if not isinstance(carrier, SimulatedCarrier):
                raise SimulationError(f"{number.carrier} is a real carrier: it cannot simulate callers")
            return await carrier.simulate_call(
                from_number=CALLER,
                to_number=number.phone_number,
                lines=[SpokenLine(text=line) for line in simulation.lines[: simulation.max_turns]],
                callbacks=build_callback_urls(self.settings.base_url, simulation.organization_id, number.carrier),
                progress=note,
            )


def _read(call: Call, lines: Sequence[TranscriptLine], played: SimulatedConversation) -> None:
    """Read the transcript of a call. Raises `SimulationError` for one that the platform or a provider ended."""
    played.call_id = call.id
    said = [line for line in lines if not line.backchannel]
    played.spoken = [Utterance(line.role, line.content.value) for line in said]  # type: ignore[arg-type]
    played.tools = [
        RecordedToolCall(str(json.loads(line.content.value)["tool"])) for line in lines if line.role == "tool"
    ]
    played.latencies = [int(turn["first_frame_ms"]) for turn in call.latencies if turn["first_frame_ms"] is not None]
    ended_by = ENDED_BY.get(call.ended_reason or "")
    if ended_by is None:
        raise SimulationError(f"the call ended by {call.ended_reason}: {call.error_message or 'no further details'}")
    played.ended_by = ended_by
