"""The do-not-call list on the wire, an addition to the specification."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from switchboard.foundation.web.schemas import (
    Answer,
    Moment,
    PageQuery,
    PhoneNumberFilter,
    PhoneNumberText,
    RequestBody,
)
from switchboard.resources.do_not_call.models import DoNotCallEntry

Source = Literal["api", "text", "call"]


class DoNotCallCreate(RequestBody):
    """A number not to be called again."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"phone_number": "+15550100001", "note": "Asked by letter."}]}
    )

    phone_number: PhoneNumberText
    note: Annotated[str, Field(max_length=10_000)] = ""


class DoNotCallQuery(PageQuery):
    """Filters of the do-not-call list."""

    phone_number: PhoneNumberFilter | None = None


class DoNotCallOut(Answer):
    """An entry of the do-not-call list."""

    id: UUID
    phone_number: str
    source: Source = Field(description="Where the wish was heard: through the API, in a text, in a call.")
    note: str
    created_at: Moment

    @classmethod
    def of(cls, entry: DoNotCallEntry) -> "DoNotCallOut":
        return cls.model_validate(entry)
