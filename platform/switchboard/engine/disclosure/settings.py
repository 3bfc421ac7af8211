"""Settings of disclosure, of an agent and of a tenant file."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from switchboard.engine.disclosure.disclosure import ConsentMode
from switchboard.engine.disclosure.places import is_place
from switchboard.foundation.web.schemas import RequestBody

MAX_TEXT_CHARACTERS = 1000


def _check_place(code: str) -> str:
    if not is_place(code):
        raise ValueError(f"{code} is not a country with phone numbers (DE), or a region of the US or Canada (US-CA)")
    return code


Place = Annotated[str, AfterValidator(_check_place)]
PresetName = Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]{2})?$")]
WithoutConsent = Literal["continue", "end_call"]
Sentence = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARACTERS, pattern=r"\S")]


class DisclosureRule(RequestBody):
    """Notice and consent at the beginning of a call."""

    ai_notice: bool = Field(False, description="Say that an AI is speaking.")
    consent: ConsentMode = Field(
        "none",
        description=(
            "`none`: the call is recorded. `notice`: say so; who stays on the line consents. `ask`: record only after "
            "a yes, by voice or key."
        ),
    )


class SpokenTexts(RequestBody):
    """Sentences of the organization; null: the standard one in the agent's language."""

    ai_notice: Sentence | None = Field(None, description="Says that an AI is speaking.")
    recording_notice: Sentence | None = Field(None, description="Says that the call is recorded.")
    question: Sentence | None = Field(None, description="Names both ways to answer: yes and no, or keys 1 and 2.")
    unclear: Sentence | None = Field(None, description="Spoken before the question is repeated.")
    refused: Sentence | None = Field(None, description="Spoken without consent, if the call goes on.")
    goodbye: Sentence | None = Field(None, description="Spoken without consent, if the call ends.")


class DisclosureSettings(DisclosureRule):
    """Notice and consent at the beginning of calls.

    The rule of a call is that of `countries` for the other party's number, else that of `presets`, else the own
    `ai_notice` and `consent`. If several presets apply, the stricter counts.
    """

    presets: list[PresetName] = Field(
        default_factory=list,
        max_length=50,
        description="Rules of jurisdictions, by name; `us` includes the states. Not legal advice.",
        examples=[["eu", "us"]],
    )
    countries: dict[Place, DisclosureRule] = Field(
        default_factory=dict,
        max_length=300,
        description="Rules by the country of the other party's number, or its region in the US and Canada.",
        examples=[{"DE": {"ai_notice": True, "consent": "ask"}}],
    )
    without_consent: WithoutConsent = Field("continue", description="What happens to the call after a no.")
    texts: SpokenTexts = Field(default_factory=SpokenTexts, description="Sentences in the place of the standard ones.")
