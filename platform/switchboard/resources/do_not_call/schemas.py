"""API schemas of the do-not-call list, an addition to the specification."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from switchboard.foundation.web.schemas import (
    Answer,
    CreatedAt,
    PageQuery,
    PhoneNumberFilter,
    PhoneNumberText,
    RequestBody,
    show_example,
)

Source = Literal["api", "text", "call"]


class DoNotCallCreate(RequestBody):
    """A number to add to the do-not-call list."""

    model_config = show_example(phone_number="+15550100001", note="Asked by letter.")

    phone_number: PhoneNumberText = Field(description="E.164 number that is neither called nor texted.")
    note: Annotated[str, Field(max_length=10_000)] = Field("", description="Free text for people.")


class DoNotCallQuery(PageQuery):
    """Filters of the do-not-call list."""

    phone_number: PhoneNumberFilter | None = Field(None, description="Exact phone number.")


class DoNotCallOut(Answer):
    """An entry of the do-not-call list."""

    id: UUID = Field(description="Id of the entry.")
    phone_number: str
    source: Source = Field(description="Channel of the request: the API, a text message, or a call.")
    note: str
    created_at: CreatedAt
