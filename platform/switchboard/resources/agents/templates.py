"""Templates of agents for kinds of business, as the file `templates.toml` has them."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class TemplateTool(BaseModel):
    """A tool that an agent would use: its name, its description, and its arguments with a description each."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    description: str
    arguments: Mapping[str, str]

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """The JSON schema of the arguments, all of which are texts that the model must give."""
        properties: dict[str, JsonValue] = {
            name: {"type": "string", "description": description} for name, description in self.arguments.items()
        }
        return {"type": "object", "properties": properties, "required": list(self.arguments)}


class AgentTemplate(BaseModel):
    """A template: what it is for, and the texts of the agent. `variables` describes the placeholders of its prompt."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[a-z-]+$")
    title: str
    description: str
    name: str
    greeting_message: str
    system_prompt: str
    variables: Mapping[str, str] = Field(default_factory=dict)
    tools: Sequence[TemplateTool] = ()


@cache
def load_templates() -> Mapping[str, AgentTemplate]:
    """Return the templates by id, in the order of the file."""
    read = tomllib.loads(files(__package__).joinpath("templates.toml").read_text())
    return {template.id: template for template in map(AgentTemplate.model_validate, read["template"])}
