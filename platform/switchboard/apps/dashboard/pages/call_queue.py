"""The call queue: callers who wait for a person, callbacks, and the notifications of browsers."""

from uuid import UUID

from switchboard.apps.dashboard.blueprint import Next, action, go_to, live_part, page
from switchboard.apps.dashboard.ui.rendering import render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import get_row
from switchboard.resources.calls import call_queue
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.models import Call, CallQueueEntry
from switchboard.resources.calls.queries import attend_queue, list_queue_entries
from switchboard.resources.calls.schemas import CallCreate
from switchboard.resources.contacts.queries import get_contact_names
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.queries import list_active_numbers
from switchboard.resources.sms.queries import count_unread_conversations, list_waiting_conversations


@page("/dashboard/call-queue", role="agent")
async def call_queue_page(session: ReadSession) -> str:
    """Show the callers who wait for a person, and the callbacks that are due."""
    return await render("dashboard/call_queue/call_queue.html", **await _load_queue(session))


@live_part("/dashboard/call-queue/entries", role="agent")
async def call_queue_entries(session: ReadSession) -> str:
    """Render the callers who wait for a person, and the callbacks that are due."""
    return await render_part("dashboard/call_queue/entries.html", **await _load_queue(session))


@live_part("/dashboard/call-queue/attention", role="agent")
async def call_queue_attention(session: WriteSession, viewer: Viewer) -> str:
    """Render the ids of callers and conversations that wait for the viewer, and record that the viewer can answer."""
    await attend_queue(session, viewer.user.id)
    return await render_part(
        "dashboard/call_queue/attention.html",
        waiting=await list_queue_entries(session, "waiting"),
        conversations=await list_waiting_conversations(session, viewer.user.id),
        unread=await count_unread_conversations(session, viewer.user.id),
    )


@action("/dashboard/call-queue/callbacks/<entry_id>", role="agent")
async def call_back(session: WriteSession, viewer: Viewer, entry_id: UUID) -> Next:
    """Call back: the call rings the other party, who is connected with the viewer."""
    entry = await call_queue.take_callback(session, entry_id, viewer.user.email)
    earlier = await get_row(session, Call, entry.call_id)
    number = await numbers.find_active_number(session, earlier.phone_number_id) if earlier.phone_number_id else None
    own = number or next(iter(await list_active_numbers(session)), None)
    if own is None or earlier.agent_id is None:
        raise InvalidState("The organization has no phone number to call from.")
    data = CallCreate(
        agent_id=str(earlier.agent_id),
        from_number_id=str(own.id),
        to_number=entry.number,
        metadata={"callback_of": str(entry.call_id)},
    )
    call = await calls.place_call(session, data)
    await call_queue.begin_calling_back(session, entry, call.id)
    return go_to("live_call_page", call_id=call.id, answer="true")


async def _load_queue(session: ReadSession) -> dict[str, object]:
    waiting, callbacks = (
        await list_queue_entries(session, "waiting"),
        await list_queue_entries(session, "callback"),
    )
    ids = {entry.number for entry in (*waiting, *callbacks)}
    return {
        "waiting": waiting,
        "callbacks": callbacks,
        "names": await get_contact_names(session, ids),
        "said": {entry.id: await _get_last_words(session, entry) for entry in waiting},
    }


async def _get_last_words(session: ReadSession, entry: CallQueueEntry) -> list[tuple[str, str]]:
    """Return the last words of both sides, each with the role of its side."""
    lines = [line for line in await calls.get_transcript(session, entry.call_id) if line.role in ("user", "agent")]
    return [(line.role, line.content.value) for line in lines[-4:]]
