"""Calls and their transcripts."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlmodel import Field, SQLModel

from switchboard.foundation.database import (
    Money,
    TenantTable,
    index_due,
    json_column,
    now,
    partition_by_month,
    refer_to,
)
from switchboard.foundation.encryption.content import Content, ContentList, ContentObject, ContentText, content_column
from switchboard.foundation.web.row_counts import RowCounter

ORDER = {"queued": 0, "ringing": 1, "in-progress": 2}
"""Statuses of a call that is not over, in their order."""
CHAT: Final = "chat"
"""The carrier of a conversation in writing (`chats.py`), which no carrier has."""


class Call(TenantTable, table=True):
    """A call: the API's fields, and the state that carries it on.

    - `agent_id` stays when the agent is deleted.
    - `holder` is the server process that has the media socket, and ends the call itself while its lease lasts.
    - `watch_at` is when the reconciler recovers the call if nothing happens to it before; None while a process has it.
      A call that is over has one until its legs are hung up.
    - `cause_depth` is the length of the automation chain that caused the call; its events continue the chain.
    - `prompt_variables` are the metadata as the model may see them, until the call is over; None if they are
      `call_metadata`.
    - `transfer_target` is the carrier's id of a transfer's target that waits to be connected.
    - `has_recording` says that the store has the recording, in `recording_format`. Until then, `recording_due_at` is
      when the reconciler looks for it in the store; None if nothing is expected.
    - `has_transcript` is false once retention has deleted the transcript.
    - `quality` is that of the line, as the carrier measured it (`CallQuality` of the plugin SDK).
    - `agent_costs` has the costs of each agent by its id and by part, empty if there was one. `handoffs` are as in the
      engine's `HandoffRecord`, and `interventions` as in its `Intervention`.
    - `parts` are those of the agents of a chat (`WrittenPart`) that was handed over, until it is over.
    - `variables` are those that were learned in the call, each with its origin.
    - `consent` says which notice the call began with, and how the other party answered; None without a notice.
    - `taken_over_by` is the name of the supervisor who has the call since `taken_over_at`, or had it when it ended.
    """

    __tablename__ = "call"
    __row_counter__ = RowCounter(facets=("agent_id", "direction", "status"))
    __table_args__ = (
        UniqueConstraint("organization_id", "id"),
        Index(
            "ix_call_filtered",
            "organization_id",
            "created_at",
            "id",
            postgresql_include=[
                "direction",
                "status",
                "agent_id",
                "ended_reason",
                "user_sentiment",
                "call_successful",
                "duration_seconds",
                "from_number",
                "to_number",
            ],
        ),
        Index(None, "organization_id", "agent_id", "created_at"),
        Index(None, "organization_id", "status", "created_at"),
        Index(None, "organization_id", "from_number", "created_at"),
        Index(None, "organization_id", "to_number", "created_at"),
        index_due("ix_call_watched", "watch_at"),
        Index("ix_call_held", "holder", postgresql_where=text("holder is not null")),
        index_due("ix_call_analysis_due", "analysis_due_at"),
        index_due("ix_call_recording_due", "recording_due_at"),
        Index(
            "ix_call_recorded",
            "organization_id",
            "created_at",
            postgresql_where=text("has_recording or carrier_recording_id is not null"),
        ),
        Index("ix_call_transcribed", "organization_id", "created_at", postgresql_where=text("has_transcript")),
        Index("ix_call_open", "organization_id", postgresql_where=text("ended_at is null")),
        CheckConstraint("direction in ('inbound', 'outbound')", name="direction"),
        CheckConstraint(
            "status in ('queued', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'failed', 'canceled')",
            name="status",
        ),
    )

    agent_id: UUID | None = None
    agent_version: int | None = None
    phone_number_id: UUID | None = None
    widget_id: UUID | None = None
    direction: str
    status: str = "queued"
    from_number: str
    to_number: str
    duration_seconds: int = 0
    cost_total: Decimal = Field(default=Decimal(0), sa_type=Money)
    cost_parts: dict[str, Any] = json_column()
    agent_costs: dict[str, Any] = json_column()
    handoffs: list[dict[str, Any]] = json_column(list)
    interventions: list[dict[str, Any]] = json_column(list)
    call_summary: Content[str | None] = content_column(ContentText, nullable=True)
    call_successful: bool | None = None
    user_sentiment: str = "unknown"
    extracted_data: Content[dict[str, Any]] = content_column(ContentObject)
    variables: Content[dict[str, Any]] = content_column(ContentObject)
    parts: Content[list[Any]] = content_column(ContentList)
    call_metadata: Content[dict[str, Any]] = content_column(ContentObject)
    prompt_variables: Content[dict[str, Any] | None] = content_column(ContentObject, nullable=True)
    ended_reason: str | None = None
    error_message: str | None = None
    latencies: list[dict[str, Any]] = json_column(list)
    served_by: dict[str, Any] = json_column()
    provider_failures: list[dict[str, Any]] = json_column(list)
    answered_by: str | None = None
    quality: dict[str, Any] | None = json_column(None)
    transferred_to: str | None = None
    transfer_target: str | None = None
    consent: dict[str, Any] | None = json_column(None)
    taken_over_by: str | None = None
    taken_over_at: datetime | None = None
    carrier: str
    carrier_call_id: str | None = None
    carrier_recording_id: str | None = None
    has_recording: bool = False
    recording_format: str = "wav"
    recording_error: str | None = None
    recording_due_at: datetime | None = None
    has_transcript: bool = True
    voicemail: bool = False
    voicemail_policy: dict[str, Any] | None = json_column(None)
    holder: str | None = None
    dialing_at: datetime | None = None
    watch_at: datetime | None = None
    cause_depth: int = 0
    analysis_due_at: datetime | None = None
    analysis_attempts: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None


class TranscriptLine(SQLModel, table=True):
    """Entry of a call's transcript, written while the call goes on. Milliseconds count from the start of the audio.

    A `backchannel` of the caller did not stop the agent. `pauses` are those of the caller's turn, as in the engine's
    `Pause`. `person` is the name of the user who spoke, whispered, took the call over, or handed it back. `agent_id` is
    the agent that spoke or used a tool.

    An `unfinished` line has the first part of an utterance in progress. The line of the whole utterance replaces it,
    unless the call's process dies before.
    """

    __tablename__ = "transcript_line"
    __table_args__ = (
        CheckConstraint("role in ('user', 'agent', 'tool', 'system')", name="role"),
        partition_by_month("call_id"),
    )

    organization_id: UUID = Field(primary_key=True)
    call_id: UUID = Field(primary_key=True)
    position: int = Field(primary_key=True)
    role: str
    content: Content[str] = content_column(ContentText)
    timestamp_ms: int
    ended_ms: int
    interrupted: bool = False
    by_person: bool = False
    backchannel: bool = False
    pauses: list[dict[str, Any]] = json_column(list)
    person: str | None = None
    agent_id: UUID | None = None
    unfinished: bool = False


class TranscriptSearch(SQLModel, table=True):
    """Hashes of the words of a call's transcript, by which it is searched, once the call is over."""

    __tablename__ = "transcript_search"
    __table_args__ = (Index(None, "words", postgresql_using="gin"), partition_by_month("call_id"))

    organization_id: UUID = Field(primary_key=True)
    call_id: UUID = Field(primary_key=True)
    words: list[int] = Field(sa_type=ARRAY(BigInteger))


class CallQueueEntry(TenantTable, table=True):
    """A caller who waits for a person, or wants to be called back. `number` is empty if the caller's is withheld.

    `waiting` becomes `answered` by a takeover, `expired` after the longest wait, `abandoned` if the caller hangs up, or
    `callback`. A callback is `called_back` by a call with an entry of its own, which is `calling` until that call is
    answered; `callback_of` is the callback's entry, which is open again if it is not. `handled_by` is a user's name.
    """

    __tablename__ = "call_queue_entry"
    __table_args__ = (
        refer_to("call", "call_id"),
        Index(
            "ix_call_queue_entry_open",
            "organization_id",
            "status",
            "created_at",
            postgresql_where=text("status in ('waiting', 'calling', 'callback')"),
        ),
        Index(None, "organization_id", "call_id"),
        CheckConstraint(
            "status in ('waiting', 'answered', 'expired', 'abandoned', 'callback', 'called_back', 'calling')",
            name="status",
        ),
    )

    call_id: UUID
    number: str
    reason: Content[str] = content_column(ContentText)
    status: str = "waiting"
    handled_by: str | None = None
    ended_at: datetime | None = None
    callback_of: UUID | None = None


class QueueAttendant(TenantTable, table=True):
    """A user who can answer waiting callers: when their browser followed the queue last."""

    __tablename__ = "queue_attendant"
    __table_args__ = (UniqueConstraint("organization_id", "user_id"),)

    user_id: UUID = Field(foreign_key="user_account.id", ondelete="CASCADE", index=True)
    seen_at: datetime = Field(default_factory=now)
