"""Chats: conversations in writing that are stored as calls, so that transcripts, analysis, costs, events, retention,
and privacy requests apply to them (docs/decisions/0082-website-widgets.md).

No carrier and no media socket has a chat. It ends when nobody has written for a while, and after `MAX_LENGTH`; the
reconciler of calls sees to that by `watch_at`, which each message moves.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

from switchboard.engine.conversation.call import EndedReason
from switchboard.foundation.database import TenantSession, now
from switchboard.foundation.jobs import wake
from switchboard.resources.calls.models import CHAT, Call
from switchboard.resources.calls.states import finish_call, is_over, start_call

IDLE_TIME: Final = timedelta(minutes=10)
MAX_LENGTH: Final = timedelta(hours=4)
"""Time after which the next message begins another chat, so that limits of new conversations and of their costs apply.
"""
VISITOR: Final = "widget"
"""Stands in for the number of a visitor of a website."""


async def start_chat(session: TenantSession, chat_id: UUID, agent_id: UUID, metadata: dict[str, str]) -> Call:
    """Create a chat with an agent, in progress."""
    chat = Call(
        id=chat_id,
        organization_id=session.organization_id,
        agent_id=agent_id,
        direction="inbound",
        status="ringing",
        from_number=VISITOR,
        to_number=VISITOR,
        carrier=CHAT,
        call_metadata=dict(metadata),
    )
    session.add(chat)
    await session.flush()
    await start_call(session, chat)
    keep_open(chat)
    return chat


def keep_open(chat: Call) -> None:
    """Let the chat end only after another `IDLE_TIME` without a message, or at its `MAX_LENGTH`."""
    chat.watch_at = min(now() + IDLE_TIME, chat.created_at + MAX_LENGTH)


def is_chat_over(chat: Call) -> bool:
    """Return whether a chat has ended, or has reached its `MAX_LENGTH`."""
    return is_over(chat) or (chat.carrier == CHAT and chat.created_at + MAX_LENGTH <= now())


async def finish_chat(session: TenantSession, chat: Call) -> None:
    """End a chat in which nobody has written for a while, or that is too long, and have it analyzed."""
    reason = EndedReason.MAX_DURATION if is_chat_over(chat) else EndedReason.SILENCE
    await finish_call(session, chat, "completed", reason=reason)
    chat.analysis_due_at = now()
    wake(session, "analyze_call", organization_id=str(chat.organization_id), call_id=str(chat.id))
