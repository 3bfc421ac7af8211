"""Probes of parts of an agent while its form is filled in: hearing a voice, and testing a tool."""

from dataclasses import asdict
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from quart import Response, jsonify

from switchboard.apps.dashboard.blueprint import action
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.engine.conversation.agent_settings import DeclaredTool
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.agents.tool_tests import ToolTester
from switchboard.resources.agents.voice_samples import VoiceSample, VoiceSampler

_arguments: TypeAdapter[JsonObject] = TypeAdapter(JsonObject)


class ToolTestForm(BaseModel):
    """A tool as its row has it, as JSON, and the arguments of the test."""

    model_config = ConfigDict(extra="forbid")

    agent_id: str = Field("", max_length=64)
    tool: str = Field(max_length=100_000)
    arguments: str = Field("", max_length=100_000)

    def read_tool(self) -> DeclaredTool:
        """Return the tool. Raises `ValidationFailed`."""
        try:
            return DeclaredTool.model_validate_json(self.tool, strict=False)
        except ValidationError as error:
            raise ValidationFailed.from_error(error) from None

    def read_arguments(self) -> JsonObject:
        """Return the arguments. Raises `ValidationFailed`."""
        try:
            return _arguments.validate_json(self.arguments.strip() or "{}")
        except ValidationError:
            raise ValidationFailed.field("arguments", _("must be a JSON object")) from None


@action("/dashboard/agents/voices/sample", for_script=True)
async def speak_voice_sample(viewer: Viewer, data: VoiceSample, sampler: VoiceSampler) -> Response:
    """Return a sample of a voice as a WAV file."""
    return Response(await sampler.speak(viewer.organization_id, data), content_type="audio/wav")


@action("/dashboard/agents/tools/test", role="owner", for_script=True)
async def test_tool(viewer: Viewer, data: ToolTestForm, tester: ToolTester) -> Response:
    """Send a real request to a tool, and return the request and the answer."""
    agent_id: UUID | None = parse_id(data.agent_id)
    result = await tester.test_tool(viewer.principal, agent_id, data.read_tool(), data.read_arguments())
    return jsonify(asdict(result))
