"""API schemas of contacts."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from switchboard.foundation.web.schemas import (
    Answer,
    CreatedAt,
    PageQuery,
    PartialBody,
    PhoneNumberFilter,
    PhoneNumberText,
    Query,
    RequestBody,
    UpdatedAt,
    show_example,
)

MAX_LABEL = 255
Label = Annotated[str, Field(max_length=MAX_LABEL)]
Address = Annotated[str, Field(max_length=1_000)]
Notes = Annotated[str, Field(max_length=10_000)]


class ContactFields(RequestBody):
    """Fields that create and update share."""

    name: Label | None = Field(None, description="Name of the person.")
    email: Label | None = Field(None, description="Email address, as given.")
    company: Label | None = Field(None, description="Name of the company.")
    notes: Notes | None = Field(None, description="Free text, at most 10 000 characters.")
    tags: Label | None = Field(None, description="Free text; the separator of tags is yours to choose.")
    address: Address | None = Field(None, description="Postal address, as given.")
    role: Label | None = Field(None, description="Job or part of the person, such as `buyer`.")
    is_favorite: bool = Field(False, description="A mark of your own; it changes nothing else.")


class ContactCreate(ContactFields):
    """A new contact."""

    model_config = show_example(phone_number="+15550100001", name="Ada Lovelace", tags="customer, vip")

    phone_number: PhoneNumberText = Field(description="E.164 number, which only one contact of the organization has.")


class ContactUpdate(ContactFields, PartialBody):
    """A partial update of a contact; null clears a text."""

    model_config = show_example(notes="Prefers to be called in the morning.", company=None)

    phone_number: PhoneNumberText = Field(
        "", description="E.164 number, which only one contact of the organization has."
    )


class ContactFilters(Query):
    """Filters of contacts."""

    search: str = Field(
        "", max_length=255, description="Every word must occur in name, company, email, number, notes, or tags."
    )
    phone: PhoneNumberFilter | None = Field(None, description="Exact phone number.")


class ContactQuery(ContactFilters, PageQuery):
    """Filters of the contact list, and the page."""


class ContactOut(Answer):
    """A contact."""

    id: UUID = Field(description="Id of the contact.")
    phone_number: str
    name: str | None
    email: str | None
    company: str | None
    notes: str | None
    tags: str | None
    address: str | None
    role: str | None
    is_favorite: bool
    created_at: CreatedAt
    updated_at: UpdatedAt
