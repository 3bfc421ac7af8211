"""Mode `audio`: a real call over a carrier that can play the caller, with everything that a call does and costs."""

import json

from switchboard.plugin_sdk import CallProgress, SimulatedCall, SimulatedCarrier, SpokenLine
from switchboard.resources.agents.models import Agent
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.after.settlement import wait_until_settled
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.purchases import callback_urls
from switchboard.resources.simulations import service as simulations
from switchboard.resources.simulations.assertions import EndedBy
from switchboard.resources.simulations.models import Simulation
from switchboard.resources.simulations.result import NotPlayed, Played, Spoken, ToolUse
from switchboard.runtime import Runtime

CALLER = "+15550100001"
SETTLE_SECONDS = 15.0
ENDED_BY: dict[str, EndedBy] = {
    "caller_hung_up": "caller", "agent_hung_up": "agent", "silence": "agent", "transferred": "transfer", "taken_over": "transfer",
    "max_duration": "limit",
}  # fmt: skip


async def hold(runtime: Runtime, simulation: Simulation, agent: Agent, played: Played) -> None:
    """Ring a number of the agent's and say the lines; `played` has the call even where it breaks.

    Raises `ProviderError`, and `NotPlayed` for a call that did not come about or broke.
    """
    async with runtime.database.tenant(simulation.organization_id) as session:
        number = await simulations.simulated_number(session, runtime.registry, agent.id)
    if number is None:
        raise NotPlayed("the agent answers no number whose carrier can play a caller any more")
    rung = await _ring(runtime, simulation, number, played)
    if not rung.answered:
        raise NotPlayed(f"the call was not answered: {rung.refused_reason}")
    try:
        call = await wait_until_settled(
            runtime.database, simulation.organization_id, rung.carrier_call_id, seconds=SETTLE_SECONDS
        )
    except TimeoutError:
        raise NotPlayed("the call was not written down to its end in time") from None
    async with runtime.database.tenant(simulation.organization_id) as session:
        _read(call, await calls.get_transcript(session, call.id), played)
    cut_short = rung.hung_up_by == "limit" or len(simulation.lines) > simulation.max_turns
    if cut_short and played.ended_by == "caller":
        played.ended_by = "limit"


async def _ring(runtime: Runtime, simulation: Simulation, number: PhoneNumber, played: Played) -> SimulatedCall:
    def note(progress: CallProgress) -> None:
        if progress.line is not None:
            played.add("user", simulation.lines[progress.line - 1])

    async with runtime.providers.telephony(simulation.organization_id, number.carrier) as carrier:
        if not isinstance(carrier, SimulatedCarrier):
            raise NotPlayed(f"{number.carrier} is a real carrier: it cannot play a caller")
        return await carrier.simulate_call(
            from_number=CALLER,
            to_number=number.phone_number,
            lines=[SpokenLine(text=line) for line in simulation.lines[: simulation.max_turns]],
            callbacks=callback_urls(runtime, simulation.organization_id, number.carrier),
            progress=note,
        )


def _read(call: Call, lines: list[TranscriptLine], played: Played) -> None:
    """What is looked at of a call. Raises `NotPlayed` for one that the platform or a provider broke off."""
    played.call_id = call.id
    played.spoken = [Spoken(line.role, line.content) for line in lines]  # type: ignore[arg-type] # the table's check constraint
    played.tools = [ToolUse(str(json.loads(line.content)["tool"])) for line in lines if line.role == "tool"]
    played.latencies = [int(turn["first_frame_ms"]) for turn in call.latencies if turn["first_frame_ms"] is not None]
    ended_by = ENDED_BY.get(call.ended_reason or "")
    if ended_by is None:
        raise NotPlayed(f"the call ended by {call.ended_reason}: {call.error_message or 'nothing more is known'}")
    played.ended_by = ended_by
