"""Conversion of forms to bodies of the API."""

import re

import pytest
from switchboard.apps.dashboard.forms.form import parse_form
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.resources.agents.schemas import AgentUpdate

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People


def test_a_cleared_field_is_saved_as_empty() -> None:
    """The default of a prompt is empty; that of the language is not."""
    data = parse_form(AgentUpdate, {"greeting_message": " ", "stt_language": "", "llm_model": "", "voice_speed": ""})
    assert data.model_dump(exclude_unset=True) == {"greeting_message": "", "llm_model": None}


def test_a_cleared_name_is_refused() -> None:
    with pytest.raises(ValidationFailed) as refusal:
        parse_form(AgentUpdate, {"name": ""})
    assert [error["field"] for error in refusal.value.errors] == ["name"]


def test_errors_are_worded_for_users() -> None:
    with pytest.raises(ValidationFailed) as refusal:
        parse_form(
            AgentUpdate,
            {
                "name": "",
                "voice_speed": "fast",
                "llm_temperature": "9",
                "max_call_duration_seconds": "1.5",
                "llm_model": "x" * 300,
            },
        )
    messages = {error["field"]: error["message"] for error in refusal.value.errors}
    assert messages == {
        "name": "is required",
        "voice_speed": "must be a number",
        "llm_temperature": "must be at most 2",
        "max_call_duration_seconds": "must be a whole number",
        "llm_model": "must have at most 255 characters",
    }


@pytest.mark.parametrize(
    "path",
    [
        "/dashboard/agents/new",
        "/dashboard/automations/new",
        "/dashboard/automations/new/draft",
        "/dashboard/contacts/new",
    ],
)
async def test_malformed_forms_are_refused_without_a_crash(people: People, caller: Caller, path: str) -> None:
    """Send NUL, which PostgreSQL refuses, in names and values; and objects and lists instead of texts."""
    member = await people.join(caller.organization_id, role="builder")
    malformed: dict[str, str | list[str]] = {
        "name": "a\0b",
        "a\0b": "x",
        "tts_provider": "a\0b",
        "phone_number": "1\0",
        "llm_model.0.x": "y",
    }
    refused = await member.post(
        path,
        {**malformed, "actions.0.type.0.x": "y", "actions.1.type[]": "y", "conditions.0.field.0": "z", "filters": "x"},
    )
    assert refused.status in (200, 422)
    assert "b" in refused.html, "what was typed is there"


async def test_secret_fields_do_not_accept_saved_passwords(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    for path in ("/dashboard/agents/new", "/dashboard/providers/telephony/twilio", "/dashboard/webhooks/integration"):
        fields = re.findall(r'<input[^>]*type="password"[^>]*>', (await owner.get(path)).html)
        assert fields, path
        assert all('autocomplete="new-password"' in field for field in fields), fields
