"""API schemas of privacy requests, an addition to the specification."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from switchboard.foundation.web.schemas import Answer, CreatedAt, Moment, PhoneNumberText, RequestBody, show_example


class PrivacyRequestCreate(RequestBody):
    """A person's request. The person is known by a phone number."""

    model_config = show_example(kind="export", phone_number="+15550100001")

    kind: Literal["export", "erase"] = Field(description="A copy of the person's data, or its deletion for good.")
    phone_number: PhoneNumberText = Field(description="E.164 number by which the person is known.")


class PrivacyReport(BaseModel):
    """Rows of a request by table."""

    exported: dict[str, int] = Field(default={}, description="Rows, and recordings, in the file of an export.")
    deleted: dict[str, int] = Field(default={}, description="Deleted rows.")
    redacted: dict[str, int] = Field(default={}, description="Rows in which the number became `[erased]`.")
    waiting: dict[str, int] = Field(
        default={}, description="Rows that are still in use, such as a live call. They are erased once that is over."
    )
    is_on_do_not_call_list: bool = Field(default=False, description="The list keeps a digest of the number.")


class PrivacyRequestOut(Answer):
    """A person's request."""

    id: UUID = Field(description="Id of the request.")
    kind: Literal["export", "erase"]
    status: Literal["queued", "running", "completed", "failed"] = Field(
        description="`completed` and `failed` are final."
    )
    phone_number: str | None = Field(description="Null once the number is erased.")
    report: PrivacyReport = Field(description="What was found and done, so far.")
    error_message: str | None = Field(description="Reason for `failed`, in words.")
    created_at: CreatedAt
    completed_at: Moment | None = Field(description="Time of the end; null before it.")
    file_expires_at: Moment | None = Field(description="When the file of an export is deleted; null without a file.")


class ExportLinkOut(Answer):
    """Link to the file of an export that needs no credential until it expires."""

    url: str = Field(description="Address of the file.")
    expires_at: Moment = Field(description="Time from which the address is refused.")
