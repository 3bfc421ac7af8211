"""Agents as files: the JSON of `POST /v1/agents`, without secrets and ids, so that it fits another installation."""

import json

from pydantic import JsonValue, ValidationError

from switchboard.foundation.web.errors import ValidationFailed
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.schemas import AgentCreate, AgentOut

LEFT_OUT = frozenset(
    {"webhook_secret", "appointment_type_ids", "handoffs", "knowledge_base_ids", "required_simulations"}
)
"""Fields that belong to one installation: a secret, and references to other resources."""


def export_agent(agent: Agent) -> dict[str, JsonValue]:
    """Return the settings of an agent as the body that would create it."""
    shown: dict[str, JsonValue] = AgentOut.from_row(agent).model_dump(mode="json", exclude_none=True)
    return {name: value for name, value in shown.items() if name in AgentCreate.model_fields.keys() - LEFT_OUT}


def read_agent_file(content: bytes) -> AgentCreate:
    """Return the agent of a file. Ids and fields that only responses have are left out.

    Raises `ValidationFailed` with what is wrong with the file.
    """
    try:
        given = json.loads(content)
    except (ValueError, RecursionError):
        raise ValidationFailed.field("file", "is not JSON") from None
    if not isinstance(given, dict):
        raise ValidationFailed.field("file", "is not a JSON object with the fields of an agent")
    ignored = LEFT_OUT | (AgentOut.model_fields.keys() - AgentCreate.model_fields.keys())
    try:
        return AgentCreate.model_validate({name: value for name, value in given.items() if name not in ignored})
    except ValidationError as error:
        raise ValidationFailed.from_error(error) from None
