"""Forms as the API's bodies."""

import pytest
from switchboard.agents.schemas import AgentUpdate
from switchboard.dashboard.forms import parse
from switchboard.web.errors import ValidationFailed


def test_what_is_cleared_is_empty_and_not_left_as_it_was() -> None:
    """A prompt's default is the empty text; the language's is not."""
    data = parse(AgentUpdate, {"greeting_message": " ", "stt_language": "", "llm_model": "", "voice_speed": ""})
    assert data.model_dump(exclude_unset=True) == {"greeting_message": "", "llm_model": None}


def test_a_name_that_is_cleared_is_refused() -> None:
    with pytest.raises(ValidationFailed) as refusal:
        parse(AgentUpdate, {"name": ""})
    assert [error["field"] for error in refusal.value.errors] == ["name"]
