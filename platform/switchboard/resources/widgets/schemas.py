"""API schemas of widgets."""

import re
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from switchboard.foundation.web.schemas import (
    Answer,
    CreatedAt,
    Dollars,
    Name,
    PageQuery,
    PartialBody,
    ReferenceId,
    RequestBody,
    UpdatedAt,
    show_example,
)
from switchboard.resources.widgets.origins import is_public_suffix

_ORIGIN = re.compile(
    r"(https?)://(?P<wildcard>\*\.)?"
    r"(?P<host>[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*)(:[0-9]{1,5})?"
)


def _origin(value: str) -> str:
    origin = value.lower().removesuffix("/")
    matched = _ORIGIN.fullmatch(origin)
    if not matched:
        raise ValueError("must be an origin like https://www.example.com, or https://*.example.com for its subdomains")
    if matched["wildcard"] and is_public_suffix(matched["host"]):
        raise ValueError("must not be every site under a public suffix, such as https://*.com or https://*.co.uk")
    return origin


Origin = Annotated[str, Field(max_length=255, examples=["https://www.example.com"]), AfterValidator(_origin)]
Language = Literal["en", "de", "es", "fr"]
Color = Annotated[str, Field(pattern="^#[0-9a-fA-F]{6}$", examples=["#0f766e"])]
Title = Annotated[str, Field(min_length=1, max_length=60)]
Greeting = Annotated[str, Field(min_length=1, max_length=500)]


class WidgetFields(RequestBody):
    """Fields that create and update share. A missing field keeps its default or its value."""

    enabled: bool = Field(True, description="False turns the widget off on every page.")
    demo_enabled: bool = Field(False, description="Serve the demo page, which anybody with its address can open.")
    allowed_origins: list[Origin] = Field(
        [],
        max_length=50,
        description="Sites that may show the widget: origins such as `https://www.example.com`, or "
        "`https://*.example.com` for every subdomain, but not the domain itself.",
    )
    text_enabled: bool = Field(True, description="Visitors may write.")
    voice_enabled: bool = Field(
        True, description="Visitors may talk. Needs a carrier with calls over the platform's WebSocket."
    )
    color: Color = Field("#0f766e", description="Color of the button and of the visitor's messages.")
    position: Literal["left", "right"] = Field("right", description="Corner of the page, at the bottom.")
    title: Title | None = Field(None, description="Title of the panel; null: the agent's name.")
    greeting: Greeting | None = Field(
        None, description="First message of a chat; null: the agent's greeting. Calls begin with the agent's."
    )
    language: Language | None = Field(
        None, description="Language of the buttons; null: the first of the visitor's browser, or else English."
    )
    max_sessions_per_minute: int = Field(30, ge=1, le=10_000, description="Conversations that may begin in a minute.")
    max_sessions_per_minute_per_address: int = Field(
        5, ge=1, le=1_000, description="Conversations that one client address may begin in a minute."
    )
    max_concurrent_sessions: int = Field(10, ge=1, le=1_000, description="Conversations at the same time.")
    max_spend_per_day: float = Field(
        10.0,
        ge=0,
        le=1_000_000,
        description="US dollars that the widget's conversations of the last 24 hours may cost. Beyond it no "
        "conversation begins, and chats are not answered; calls in progress go on.",
    )


class WidgetCreate(WidgetFields):
    """A new widget."""

    model_config = show_example(
        name="Website", agent_id="019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11", allowed_origins=["https://www.example.com"]
    )

    name: Name
    agent_id: ReferenceId = Field(description="Id of the agent that visitors talk to.")


class WidgetUpdate(WidgetFields, PartialBody):
    """A partial update of a widget."""

    model_config = show_example(color="#1d4ed8", max_spend_per_day=25)

    name: Name = ""
    agent_id: ReferenceId = Field("", description="Id of the agent that visitors talk to.")


class WidgetQuery(PageQuery):
    """Filters of the widget list, and the page."""

    agent_id: str | None = Field(None, max_length=64, description="Id of the agent.")


class WidgetOut(Answer):
    """A widget."""

    id: UUID = Field(description="Id of the widget.")
    agent_id: UUID = Field(description="Id of the agent that visitors talk to.")
    name: Name
    public_key: str = Field(description="Key for `data-key` of the script. It names the widget, and is not a secret.")
    enabled: bool
    demo_enabled: bool
    allowed_origins: list[str]
    text_enabled: bool
    voice_enabled: bool
    color: str
    position: Literal["left", "right"]
    title: str | None
    greeting: str | None
    language: Language | None
    max_sessions_per_minute: int
    max_sessions_per_minute_per_address: int
    max_concurrent_sessions: int
    max_spend_per_day: Dollars
    created_at: CreatedAt
    updated_at: UpdatedAt
