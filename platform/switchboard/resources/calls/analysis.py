"""Analysis of a finished call: summary, success, sentiment, and extracted data, in one structured model request."""

import asyncio
from datetime import timedelta
from typing import Annotated, Any, Final, Literal, TypeAlias
from uuid import UUID

import structlog
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from switchboard.engine.conversation.agent_settings import AgentSettings, ExtractedField
from switchboard.engine.providers.conversation import open_agent_model
from switchboard.engine.providers.health import ServiceRecord
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, now
from switchboard.foundation.encryption.content import Content, seal_content
from switchboard.foundation.events.catalog import CallTranscriptReady
from switchboard.foundation.events.outbox import publish
from switchboard.foundation.observability import traces
from switchboard.foundation.web.paging import lock_row
from switchboard.plugin_sdk import ChatRequest, Message, ModelUsage, ProviderError, TextDelta
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.agents.models import Agent
from switchboard.resources.billing import ledger
from switchboard.resources.billing.ledger import calculate_model_cost
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.models import Call, TranscriptLine
from switchboard.resources.calls.queries import index_transcript
from switchboard.resources.calls.states import build_call_event
from switchboard.resources.identity.service import get_policy

logger = structlog.get_logger()
MAX_ATTEMPTS = 3
RETRY_AFTER = timedelta(seconds=60)
"""Time for which the process that begins an analysis has it for itself."""
LONGEST_SECONDS: Final = 50.0
JUST_DUE: Final = timedelta(seconds=1)
"""More than the clocks of two processes differ: a later due time means that another process is at work."""
INSTRUCTION = (
    "You analyze a phone call between an agent and a caller. "
    "Answer with one JSON object of the given schema and nothing else. "
    "The agent's instructions were:\n{prompt}\n\nThe transcript follows."
)

Value: TypeAlias = str | int | float | bool | None
FACTS: Final[dict[str, Any]] = {
    "type": "array",
    "description": "Facts that the caller gave.",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Short, in snake_case."},
            "value": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]},
        },
        "required": ["name", "value"],
        "additionalProperties": False,
    },
}
"""Schema for facts if the agent has no extraction schema: vendors that enforce schemas support no objects with open
names."""


def _map_facts(found: object) -> object:
    """Convert a list of facts, as in the schema above, to a mapping by name."""
    if not isinstance(found, list):
        return found
    return {
        fact["name"]: fact.get("value")
        for fact in found
        if isinstance(fact, dict) and isinstance(fact.get("name"), str)
    }


class Analysis(BaseModel):
    """Result of the analysis of a call."""

    model_config = ConfigDict(extra="ignore")

    summary: str = Field(
        max_length=10_000, description="Two or three sentences: what the caller wanted and what came of it."
    )
    successful: bool = Field(description="Whether the caller got what they called for, or the agent reached its goal.")
    sentiment: Literal["positive", "neutral", "negative", "unknown"] = Field(description="The caller's mood.")
    extracted_data: Annotated[dict[str, Value], BeforeValidator(_map_facts), WithJsonSchema(FACTS)]


async def analyze_call(database: Database, providers: Providers, *, organization_id: UUID, call_id: UUID) -> None:
    """Analyze a finished call and publish that its transcript is ready, even if the analysis fails.

    A call that another process analyzes is left alone.
    """
    with traces.span("analysis", context=traces.build_call_context(call_id)):
        async with database.write(organization_id) as session:
            call = await lock_row(session, Call, call_id)
            if call.analysis_due_at is None or call.analysis_due_at > now() + JUST_DUE:
                return
            call.analysis_attempts += 1
            call.analysis_due_at = now() + RETRY_AFTER
            lines = await calls.get_transcript(session, call_id)
            await index_transcript(session, call_id)
        spoken = [line for line in lines if line.role in ("user", "agent")]
        usage, record, analysis = list[ModelUsage](), ServiceRecord(), None
        try:
            if spoken:
                async with asyncio.timeout(LONGEST_SECONDS):
                    analysis = await _request_analysis(database, providers, call, spoken, usage=usage, record=record)
        except (ProviderError, ValidationError, TimeoutError) as error:
            logger.warning(
                "call not analyzed", call_id=str(call_id), attempt=call.analysis_attempts, error=type(error).__name__
            )
            if call.analysis_attempts < MAX_ATTEMPTS:
                return
        await _save(database, call, analysis, usage, record)


async def _request_analysis(
    database: Database,
    providers: Providers,
    call: Call,
    lines: list[TranscriptLine],
    *,
    usage: list[ModelUsage],
    record: ServiceRecord,
) -> Analysis:
    async with database.read(call.organization_id) as session:
        agent = await session.find(Agent, call.agent_id)
    if agent is None:
        raise ProviderError("the call's agent has been deleted")
    schema = Analysis.model_json_schema()
    if agent.settings.extraction_schema is not None:
        schema["properties"]["extracted_data"] = agent.settings.extraction_schema.model_dump(exclude_none=True)
    transcript = "\n".join(f"{line.role}: {line.content.value}" for line in lines)
    instruction = INSTRUCTION.format(prompt=agent.settings.system_prompt)
    request = ChatRequest(
        messages=(Message("system", instruction), Message("user", transcript)),
        model=agent.settings.llm_model,
        temperature=0.0,
        response_schema=schema,
    )
    text = []
    async with open_agent_model(providers, call.organization_id, agent.settings, record) as model:
        async for event in model.chat(request):
            if isinstance(event, TextDelta):
                text.append(event.text)
            elif isinstance(event, ModelUsage):
                usage.append(event)
    analysis = Analysis.model_validate_json("".join(text))
    analysis.extracted_data = _keep_requested(analysis.extracted_data, agent.settings)
    return analysis


def _keep_requested(found: dict[str, Value], agent: AgentSettings) -> dict[str, Value]:
    """Keep the facts that match the agent's extraction schema: models add fields and mistake types."""
    if agent.extraction_schema is None:
        return {name: value for name, value in found.items() if value is not None}
    wanted = agent.extraction_schema.properties
    return {name: value for name, value in found.items() if name in wanted and _fits(value, wanted[name])}


def _fits(value: Value, field: ExtractedField) -> bool:
    kinds: dict[str, tuple[type, ...]] = {
        "string": (str,),
        "number": (int, float),
        "integer": (int,),
        "boolean": (bool,),
    }
    # In Python, but not in JSON, True is an int.
    if isinstance(value, bool) != (field.type == "boolean"):
        return False
    return isinstance(value, kinds[field.type]) and (field.enum is None or value in field.enum)


async def _save(
    database: Database, analyzed: Call, analysis: Analysis | None, usage: list[ModelUsage], record: ServiceRecord
) -> None:
    async with database.write(analyzed.organization_id) as session:
        call = await lock_row(session, Call, analyzed.id)
        if call.analysis_due_at is None:
            return
        call.analysis_due_at = None
        if analysis is not None:
            call.call_summary, call.call_successful = Content(analysis.summary), analysis.successful
            call.user_sentiment, call.extracted_data = analysis.sentiment, Content(dict(analysis.extracted_data))
            await seal_content(session, call)
            if Capability.LLM in record.served:
                call.served_by = {**call.served_by, "analysis": record.served[Capability.LLM]}
        # An entry of the ledger of its own, because the call was charged when it ended.
        cost = calculate_model_cost((await get_policy(session, call.organization_id)).prices, usage)
        if await ledger.settle_hold(session, "analysis", call.id, cost):
            call.cost_parts = {**call.cost_parts, "analysis": float(cost)}
            call.cost_total += cost
        await publish(session, await build_call_event(session, CallTranscriptReady, call), depth=call.cause_depth)
