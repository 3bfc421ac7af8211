"""Supervision of live calls over the wire: a caller on the loopback carrier, pages on sockets, audio both ways."""

import asyncio
import contextlib
import io
import socket
import wave
from itertools import groupby
from uuid import UUID, uuid4

import aiohttp
import numpy as np
import pytest
from redis.asyncio import Redis
from sqlmodel import col, select
from switchboard.apps.embedded import DataDirectory
from switchboard.engine.conversation.call import EndedReason
from switchboard.engine.conversation.supervision import CallOver
from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.events.models import Event
from switchboard.foundation.web.errors import InvalidState, NotFound
from switchboard.resources.calls import queries
from switchboard.resources.calls.live.channel import RedisMonitorFeed
from switchboard.resources.calls.live.tickets import TICKET_SECONDS

from tests.fixtures.app import LivePlatform, Organizations
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json
from tests.fixtures.monitors import (
    Page,
    Telephone,
    connect_telephone,
    create_ticket,
    measure_likeness,
    open_page,
    synthesize_samples,
)
from tests.fixtures.processes import run_another_process

GREETING = "this is the bakery"
PERSON = "Good afternoon. How are you?"
QUESTION = "What are your opening hours?"
ANSWER = "We are open from seven to six every day of the week."
SOME = 0.25
"""The share of a voice that must be found: on a busy machine audio stutters, and what was not said is not found at
all."""


async def list_audited_actions(live: LivePlatform, call_id: UUID) -> list[str]:
    async with live.runtime.database.write(live.caller.organization_id) as session:
        rows = select(AuditEntry).where(col(AuditEntry.subject) == str(call_id)).order_by(col(AuditEntry.created_at))
        return [f"{entry.action} by {entry.actor}" for entry in (await session.exec(rows)).all()]


async def list_ongoing_calls(live: LivePlatform) -> list[tuple[str | None, str | None]]:
    """Return the agent and the supervisor of each ongoing call, once they are not the agent's alone."""

    async def look() -> list[tuple[str | None, str | None]]:
        async with live.runtime.database.write(live.caller.organization_id) as session:
            return [(name, call.taken_over_by) for call, name in await queries.list_ongoing_calls(session)]

    return await eventually(look, lambda ongoing: ongoing != [("Agent", None)])


async def list_events(live: LivePlatform) -> list[Event]:
    async with live.runtime.database.write(live.caller.organization_id) as session:
        events = list((await session.exec(select(Event).order_by(col(Event.id)))).all())
        await open_content(session, *events)
        return events


async def speak_until_heard(person: Page, caller: Telephone) -> None:
    """Let the supervisor speak until the caller hears it."""
    for _ in range(4):
        await person.speak(PERSON)
        await caller.phone.wait(0.6)
        if await asyncio.to_thread(measure_likeness, caller.get_received_audio(), synthesize_samples(PERSON)) > SOME:
            return
    raise AssertionError("the caller does not hear the person")


async def speak_until_transcribed(person: Page, words: str) -> Json:
    """Speak until these words are in the transcript: on a busy machine the audio stutters and is misrecognized."""
    for seconds in (3, 3, 3, 15):
        await person.speak(PERSON)
        with contextlib.suppress(AssertionError):
            return await person.wait_for_entry(words, role="agent", seconds=seconds)
    raise AssertionError(f"{words} was not read")


async def is_refused(live: LivePlatform, url: str, origin: str | None = None) -> bool:
    async with aiohttp.ClientSession() as http:
        try:
            async with http.ws_connect(
                url, origin=live.runtime.settings.base_url if origin is None else origin or None
            ):
                return False
        except aiohttp.WSServerHandshakeError as error:
            return error.status == 403


async def test_a_supervisor_takes_over_speaks_and_hands_back(live: LivePlatform) -> None:
    async with connect_telephone(live) as caller, open_page(live, caller) as ada:
        await caller.phone.wait_for_voice(5)
        await caller.phone.wait(0.8)
        await ada.ask(type="take_over")
        await ada.wait_for_message("state", holder={"name": "Ada", "you": True}, agent="silent")
        await speak_until_heard(ada, caller)
        assert (await speak_until_transcribed(ada, "how are you"))["by_person"]
        await caller.say(QUESTION)
        await ada.wait_for_entry("opening hours", role="user")
        assert measure_likeness(ada.get_audio(0), synthesize_samples(QUESTION)) > SOME
        await ada.ask(type="hand_back")
        await ada.wait_for_message("state", holder=None)
        await ada.wait_for_entry(ANSWER, role="agent")
        await ada.ask(type="whisper", text="Be brief.")
        assert (await ada.wait_for_entry("Be brief.", role="system"))["person"] == "Ada"
    call = await live.wait_for_end(caller.call_id)
    assert call["ended_reason"] == "caller_hung_up"
    lines = (await live.caller.get(f"/v1/calls/{caller.call_id}/transcript")).json["items"]
    assert isinstance(lines, list)
    turns = [turn for turn, _ in groupby((line["role"], line["by_person"]) for line in lines if isinstance(line, dict))]
    assert turns[-6:-1] == [("system", False), ("agent", True), ("user", False), ("system", False), ("agent", False)]
    by_ada = [line for line in lines if isinstance(line, dict) and line["person"] == "Ada"]
    assert {(line["role"], line["by_person"]) for line in by_ada} == {("system", False), ("agent", True)}
    assert len([line for line in by_ada if line["role"] == "system"]) == 3
    assert not any("on the corner" in str(line["content"]) for line in lines if isinstance(line, dict)), (
        "the agent stopped in its greeting"
    )
    takeovers = [event.data.value for event in await list_events(live) if event.name == "call.takeover"]
    assert [data["taken_over_by"] for data in takeovers] == ["Ada"]
    assert [action.split()[0] for action in await list_audited_actions(live, caller.call_id)] == [
        "call.taken_over",
        "call.handed_back",
        "call.whispered",
        "transcript.read",
    ]
    with wave.open(io.BytesIO(await live.wait_for_recording(caller.call_id))) as file:
        recorded = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").reshape(-1, 2)
    assert measure_likeness(recorded[:, 1], synthesize_samples(PERSON)) > SOME


async def test_a_whisper_changes_the_next_answer(live: LivePlatform) -> None:
    async with connect_telephone(live) as caller, open_page(live, caller) as ada:
        await ada.ask(
            type="whisper", text='When the caller says "what are your opening hours": say "Today we are closed."'
        )
        await ada.wait_for_entry("whispered", role="system")
        await ada.wait_for_entry(GREETING, role="agent")
        await caller.say(QUESTION)
        await ada.wait_for_entry("Today we are closed.", role="agent")


async def test_only_one_supervisor_has_a_call_and_listeners_cannot_take_over(live: LivePlatform) -> None:
    async with (
        connect_telephone(live) as caller,
        open_page(live, caller) as ada,
        open_page(live, caller, "Ben") as ben,
        open_page(live, caller, "Cy", allows="listen") as cy,
    ):
        for watcher in (ada, ben, cy):
            await watcher.wait_for_message("state", holder=None)
        await ada.ask(type="take_over")
        await ben.wait_for_message("state", holder={"name": "Ada", "you": False})
        for action in ("take_over", "hand_back", "hang_up"):
            await ben.ask(type=action)
            message = (await ben.wait_for_message("refused", action=action))["message"]
            assert message == ("Ada has the call." if action == "take_over" else "You do not have the call.")
            await cy.ask(type=action)
            assert "following the call only" in str((await cy.wait_for_message("refused", action=action))["message"])
        await ben.socket.send_str("nonsense")
        assert (await ben.wait_for_message("refused", action=None))["message"] == "The message was not understood."
        await ben.socket.send_bytes(synthesize_samples(PERSON).tobytes()[:16_000])
        assert await list_ongoing_calls(live) == [("Agent", "Ada")]
        await cy.wait_for_message("levels")
        await ada.ask(type="hang_up")
        for watcher in (ada, ben, cy):
            await watcher.wait_for_message("ended", reason="taken_over")
    call = await live.wait_for_end(caller.call_id)
    assert (call["status"], call["ended_reason"]) == ("completed", "taken_over")
    assert measure_likeness(caller.get_received_audio(), synthesize_samples(PERSON)) < SOME, (
        "what somebody says who does not have the call goes nowhere"
    )
    assert cy.audio, "who may listen hears"


async def test_a_disconnected_supervisor_hands_back(live: LivePlatform) -> None:
    async with connect_telephone(live) as caller, open_page(live, caller, "Ben", allows="transcript") as ben:
        async with open_page(live, caller) as ada:
            await ada.ask(type="take_over")
            await ben.wait_for_message("state", holder={"name": "Ada", "you": False})
            transport = ada.socket.get_extra_info("socket")
            transport.shutdown(socket.SHUT_RDWR)
            await ben.wait_for_message("state", holder=None)
        assert not ben.audio, "a ticket for the transcript has no audio"
        levels = await ben.wait_for_message("levels")
        assert set(levels) == {"type", "caller", "agent"}


async def test_a_call_that_ends_during_a_takeover_counts_as_taken_over(live: LivePlatform) -> None:
    async with connect_telephone(live) as caller, open_page(live, caller) as ada:
        await ada.ask(type="take_over")
        await ada.wait_for_message("state", agent="silent")
        await caller.hang_up()
        await ada.wait_for_message("ended", reason="taken_over")
    assert (await live.wait_for_end(caller.call_id))["ended_reason"] == "taken_over"


async def test_a_page_may_wait_for_a_ringing_call(live: LivePlatform) -> None:
    call = await live.place_call("+15550100070")
    caller_id = UUID(str(call["id"]))
    url = await create_ticket(live.runtime, live.caller.organization_id, caller_id, "Ada", "control")
    async with aiohttp.ClientSession() as http, http.ws_connect(url, origin=live.runtime.settings.base_url) as watching:
        assert (await watching.receive_json())["type"] == "state"
        await watching.send_json({"type": "take_over"})
        await watching.send_json({"type": "hang_up"})
        while (message := await watching.receive()).type is not aiohttp.WSMsgType.CLOSE:
            last = message
        assert last.json() == {"type": "ended", "reason": "taken_over"}
    assert (await live.wait_for_end(caller_id))["ended_reason"] == "taken_over"


async def test_used_forged_lost_and_foreign_tickets_are_refused(
    live: LivePlatform, organizations: Organizations
) -> None:
    organization_id = live.caller.organization_id
    async with connect_telephone(live) as caller:
        async with open_page(live, caller):
            pass
        url = await create_ticket(live.runtime, organization_id, caller.call_id, "Ada", "control")
        assert await is_refused(live, url, "https://elsewhere.example"), "a foreign page"
        assert await is_refused(live, url, ""), "no page at all"
        assert not await is_refused(live, url), "refused origins do not use a ticket up"
        assert await is_refused(live, url), "used"
        assert await is_refused(live, url[:-1] + ("A" if url[-1] != "A" else "B")), "forged"
        stranger = await organizations.create()
        with pytest.raises(NotFound):
            await create_ticket(live.runtime, stranger.organization_id, caller.call_id, "Eve", "control")
        flushed = await create_ticket(live.runtime, organization_id, caller.call_id, "Ada", "control")
        await live.runtime.redis.flushall()
        assert await is_refused(live, flushed), "lost"
        late = await create_ticket(live.runtime, organization_id, caller.call_id, "Ada", "control")
        (key,) = await live.runtime.redis.keys("*:ticket:*")
        assert 0 < await live.runtime.redis.ttl(key) <= TICKET_SECONDS
        await live.runtime.redis.expire(key, 0)
        assert await is_refused(live, late), "expired"
    await live.wait_for_end(caller.call_id)
    with pytest.raises(InvalidState):
        await create_ticket(live.runtime, organization_id, caller.call_id, "Ada", "control")


async def test_supervision_survives_redis_data_loss_and_dropped_subscriptions(live: LivePlatform) -> None:
    async with connect_telephone(live) as caller, open_page(live, caller) as ada:
        await ada.wait_for_message("state", agent="speaking")
        await live.runtime.redis.flushall()
        await live.runtime.redis.client_kill_filter(_type="pubsub")
        while not any(message.get("holder") for message in ada.messages):
            await ada.ask(type="take_over")
            await caller.phone.wait(0.5)
        await speak_until_heard(ada, caller)


async def test_a_feed_ends_without_redis() -> None:
    async with Redis.from_url("redis://127.0.0.1:1") as redis:
        feed = RedisMonitorFeed(redis, uuid4())
        feed.send(CallOver(EndedReason.CALLER_HUNG_UP))
        feed.send_audio(b"")
        feed.close()
        async with asyncio.timeout(60):
            await feed._sending


async def test_the_page_may_connect_to_another_process_than_the_call(
    live: LivePlatform, servers: DataDirectory
) -> None:
    """If that process stops, the page is disconnected at once and still has the call after it reconnects elsewhere."""
    async with (
        run_another_process(live, database_url=servers.database_url, redis_url=servers.redis_url) as (port, process),
        connect_telephone(live) as caller,
    ):
        async with open_page(live, caller, port=port) as ada:
            await ada.wait_for_message("state", holder=None)
            await ada.ask(type="take_over")
            await ada.wait_for_message("state", holder={"name": "Ada", "you": True})
            await speak_until_heard(ada, caller)
            process.terminate()
            await asyncio.to_thread(process.join, 20)
            assert process.exitcode == 0
            assert ada.socket.closed
        async with open_page(live, caller) as again:
            await again.wait_for_message("state", holder={"name": "Ada", "you": True})
