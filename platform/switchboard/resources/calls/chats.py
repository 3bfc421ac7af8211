"""Chats: conversations in writing that are stored as calls, so that transcripts, analysis, costs, events, retention,
and privacy requests apply to them (docs/decisions/0082-website-widgets.md).

A chat has no carrier and no media socket. It ends when nobody has written for a while, and after `MAX_LENGTH`; the
reconciler of calls sees to that by `watch_at`, which each message moves.
"""

from contextlib import suppress
from datetime import timedelta
from typing import Final
from uuid import UUID

from switchboard.engine.conversation.call import EndedReason
from switchboard.engine.conversation.written import WrittenLine
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.encryption.content import Content, open_content, seal_content
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk import Message
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.models import CHAT, Call
from switchboard.resources.calls.states import finish_call, is_over, start_call

IDLE_TIME: Final = timedelta(minutes=10)
MAX_LENGTH: Final = timedelta(hours=4)
"""Time after which the next message begins another chat, so that limits of new conversations and of their costs apply.
"""
HISTORY_LINES: Final = 50
"""Lines of a chat that the model reads."""
CHAT_ID: Final = "chat_id"
"""Metadata of a visitor's voice call: the chat that it goes on with."""
VISITOR: Final = "widget"
"""Stands in for the number of a visitor of a website."""


async def start_chat(
    session: WriteSession, chat_id: UUID, agent_id: UUID, metadata: dict[str, str], *, widget_id: UUID
) -> Call:
    """Create a chat with an agent, in progress."""
    chat = Call(
        id=chat_id,
        organization_id=session.organization_id,
        agent_id=agent_id,
        widget_id=widget_id,
        direction="inbound",
        status="ringing",
        from_number=VISITOR,
        to_number=VISITOR,
        carrier=CHAT,
        call_metadata=Content(dict(metadata)),
    )
    await seal_content(session, chat)
    session.add(chat)
    await start_call(session, chat)
    keep_open(chat)
    return chat


async def list_chat_messages(session: ReadSession, chat_id: UUID) -> list[WrittenLine]:
    """Return the latest messages of a chat, for the model, by their place in the transcript. Raises `NotFound`, also
    without a transcript.
    """
    return [
        WrittenLine(line.position, Message("user" if line.role == "user" else "assistant", line.content.value))
        for line in (await calls.get_transcript(session, chat_id))[-HISTORY_LINES:]
        if line.role in ("user", "agent")
    ]


async def list_messages_before_call(session: ReadSession, call: Call) -> list[Message]:
    """Return the messages of the chat that a visitor's voice call goes on with; none for any other call, and if the
    chat has just been erased.
    """
    await open_content(session, call)
    chat_id = parse_id(str(call.call_metadata.value.get(CHAT_ID, ""))) if call.from_number == VISITOR else None
    if chat_id is not None:
        with suppress(NotFound):
            return [word.message for word in await list_chat_messages(session, chat_id)]
    return []


def measure_chat(chat: Call) -> int:
    """Return the milliseconds since a chat began."""
    return round((now() - (chat.started_at or chat.created_at)).total_seconds() * 1000)


def keep_open(chat: Call) -> None:
    """Let the chat end only after another `IDLE_TIME` without a message, or at its `MAX_LENGTH`."""
    chat.watch_at = min(now() + IDLE_TIME, chat.created_at + MAX_LENGTH)


def is_chat_over(chat: Call) -> bool:
    """Return whether a chat has ended, or has reached its `MAX_LENGTH`."""
    return is_over(chat) or (chat.carrier == CHAT and chat.created_at + MAX_LENGTH <= now())


async def finish_chat(session: WriteSession, chat: Call, reason: EndedReason | None = None) -> None:
    """End a chat, without a `reason` one in which nobody has written for a while, or that is too long, and have it
    analyzed.
    """
    reason = reason or (EndedReason.MAX_DURATION if is_chat_over(chat) else EndedReason.SILENCE)
    await finish_call(session, chat, "completed", reason=reason)
    chat.analysis_due_at = now()
    session.wake("analyze_call")
