"""Supervision of live calls over the wire: a caller on the loopback carrier, pages on sockets, audio both ways."""

import asyncio
import contextlib
import os
import socket
import sys
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby
from uuid import UUID, uuid4

import aiohttp
import numpy as np
import pytest
from redis.asyncio import Redis
from sqlmodel import col, select
from switchboard.apps.embedded import DataDirectory
from switchboard.engine.conversation.call import EndedReason
from switchboard.engine.conversation.handoff import supervision
from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.events.models import Event
from switchboard.foundation.web.errors import InvalidState, NotFound
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.live import tickets
from switchboard.resources.calls.live.feed import RedisMonitorFeed
from switchboard.resources.calls.media.call_runner import build_recording_path

from tests.fixtures.app import LivePlatform, Organizations
from tests.fixtures.json_access import Json
from tests.fixtures.monitors import Page, Telephone, likeness, page, telephone, ticket, voice

GREETING = "this is the bakery"
PERSON = "Good afternoon. How are you?"
QUESTION = "What are your opening hours?"
ANSWER = "We are open from seven to six every day of the week."
SOME = 0.25
"""The share of a voice that must be found: on a busy machine audio stutters, and what was not said is not found at
all."""


async def deeds(live: LivePlatform, call_id: UUID) -> list[str]:
    async with live.runtime.database.tenant(live.caller.organization_id) as session:
        rows = select(AuditEntry).where(col(AuditEntry.subject) == str(call_id)).order_by(col(AuditEntry.created_at))
        return [f"{entry.action} by {entry.actor}" for entry in (await session.exec(rows)).all()]


async def on_the_line(live: LivePlatform) -> list[tuple[str | None, str | None]]:
    """The agents whose calls go on and who has them, once somebody does."""
    async with asyncio.timeout(20):
        while True:
            async with live.runtime.database.tenant(live.caller.organization_id) as session:
                found = [(one.agent_name, one.call.taken_over_by) for one in await calls.list_ongoing_calls(session)]
            if found != [("Agent", None)]:
                return found
            await asyncio.sleep(0.05)


async def events(live: LivePlatform) -> list[str]:
    async with live.runtime.database.tenant(live.caller.organization_id) as session:
        return [event.name for event in (await session.exec(select(Event).order_by(col(Event.id)))).all()]


async def is_heard(person: Page, caller: Telephone) -> None:
    """The person says something, and the caller hears it."""
    for _ in range(4):
        await person.speak(PERSON)
        await caller.phone.wait(0.6)
        if await asyncio.to_thread(likeness, caller.heard(), voice(PERSON)) > SOME:
            return
    raise AssertionError("the caller does not hear the person")


async def is_read(person: Page, words: str) -> Json:
    """Speak until these words are in the transcript: on a busy machine the audio stutters and is misunderstood."""
    for seconds in (3, 3, 3, 15):
        await person.speak(PERSON)
        with contextlib.suppress(AssertionError):
            return await person.wait_for_entry(words, role="agent", seconds=seconds)
    raise AssertionError(f"{words} was not read")


async def refused(live: LivePlatform, url: str, origin: str | None = None) -> bool:
    async with aiohttp.ClientSession() as http:
        try:
            async with http.ws_connect(
                url, origin=live.runtime.settings.base_url if origin is None else origin or None
            ):
                return False
        except aiohttp.WSServerHandshakeError as error:
            return error.status == 403


async def test_a_person_takes_a_call_over_speaks_and_hands_it_back(live: LivePlatform) -> None:
    async with telephone(live) as caller, page(live, caller) as ada:
        await caller.phone.wait_for_voice(5)
        await caller.phone.wait(0.8)
        await ada.ask(type="take_over")
        await ada.wait_for_message("state", holder={"name": "Ada", "you": True}, agent="silent")
        await is_heard(ada, caller)
        assert (await is_read(ada, "how are you"))["by_person"]
        await caller.say(QUESTION)
        await ada.wait_for_entry("opening hours", role="user")
        assert likeness(ada.get_audio(0), voice(QUESTION)) > SOME
        await ada.ask(type="hand_back")
        await ada.wait_for_message("state", holder=None)
        await ada.wait_for_entry(ANSWER, role="agent")
    call = await live.ended(caller.call_id)
    assert call["ended_reason"] == "caller_hung_up"
    lines = (await live.caller.get(f"/v1/calls/{caller.call_id}/transcript")).json["items"]
    assert isinstance(lines, list)
    turns = [turn for turn, _ in groupby((line["role"], line["by_person"]) for line in lines if isinstance(line, dict))]
    assert turns[-5:] == [("system", False), ("agent", True), ("user", False), ("system", False), ("agent", False)]
    assert not any("on the corner" in str(line["content"]) for line in lines if isinstance(line, dict)), (
        "the agent stopped in its greeting"
    )
    assert (await events(live)).count("call.takeover") == 1
    assert [deed.split()[0] for deed in await deeds(live, caller.call_id)] == ["call.taken_over", "call.handed_back"]
    async with live.runtime.database.tenant(live.caller.organization_id) as session:
        path = build_recording_path(live.runtime.settings, await calls.get_call(session, caller.call_id))
    with wave.open(str(path)) as file:
        recorded = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").reshape(-1, 2)
    assert likeness(recorded[:, 1], voice(PERSON)) > SOME


async def test_a_whisper_changes_the_next_answer(live: LivePlatform) -> None:
    async with telephone(live) as caller, page(live, caller) as ada:
        await ada.ask(
            type="whisper", text='When the caller says "what are your opening hours": say "Today we are closed."'
        )
        await ada.wait_for_entry("whispered", role="system")
        await ada.wait_for_entry(GREETING, role="agent")
        await caller.say(QUESTION)
        await ada.wait_for_entry("Today we are closed.", role="agent")


async def test_one_person_at_a_time_has_a_call_and_who_may_only_listen_takes_none(live: LivePlatform) -> None:
    async with (
        telephone(live) as caller,
        page(live, caller) as ada,
        page(live, caller, "Ben") as ben,
        page(live, caller, "Cy", allows="listen") as cy,
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
        await ben.socket.send_bytes(voice(PERSON).tobytes()[:16_000])
        assert await on_the_line(live) == [("Agent", "Ada")]
        await cy.wait_for_message("levels")
        await ada.ask(type="hang_up")
        for watcher in (ada, ben, cy):
            await watcher.wait_for_message("ended", reason="taken_over")
    call = await live.ended(caller.call_id)
    assert (call["status"], call["ended_reason"]) == ("completed", "taken_over")
    assert likeness(caller.heard(), voice(PERSON)) < SOME, "what somebody says who does not have the call goes nowhere"
    assert cy.audio, "who may listen hears"


async def test_a_person_who_is_gone_hands_back(live: LivePlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "RECONNECT_SECONDS", 0.5)
    async with telephone(live) as caller, page(live, caller, "Ben", allows="transcript") as ben:
        async with page(live, caller) as ada:
            await ada.ask(type="take_over")
            await ben.wait_for_message("state", holder={"name": "Ada", "you": False})
            transport = ada.socket.get_extra_info("socket")
            transport.shutdown(socket.SHUT_RDWR)
            await ben.wait_for_message("state", holder=None)
        assert not ben.audio, "a ticket for the transcript has no audio"
        levels = await ben.wait_for_message("levels")
        assert set(levels) == {"type", "caller", "agent"}


async def test_a_call_that_ends_while_a_person_has_it_was_taken_over(live: LivePlatform) -> None:
    async with telephone(live) as caller, page(live, caller) as ada:
        await ada.ask(type="take_over")
        await ada.wait_for_message("state", agent="silent")
        await caller.hang_up()
        await ada.wait_for_message("ended", reason="taken_over")
    assert (await live.ended(caller.call_id))["ended_reason"] == "taken_over"


async def test_a_page_may_wait_for_a_call_that_still_rings(live: LivePlatform) -> None:
    placed = await live.place("+15550100070")
    caller_id = UUID(str(placed["id"]))
    url = await ticket(live.runtime, live.caller.organization_id, caller_id, "Ada", "control")
    async with aiohttp.ClientSession() as http, http.ws_connect(url, origin=live.runtime.settings.base_url) as watching:
        assert (await watching.receive_json())["type"] == "state"
        await watching.send_json({"type": "take_over"})
        await watching.send_json({"type": "hang_up"})
        while (message := await watching.receive()).type is not aiohttp.WSMsgType.CLOSE:
            last = message
        assert last.json() == {"type": "ended", "reason": "taken_over"}
    assert (await live.ended(caller_id))["ended_reason"] == "taken_over"


async def test_tickets(live: LivePlatform, organizations: Organizations, monkeypatch: pytest.MonkeyPatch) -> None:
    organization_id = live.caller.organization_id
    async with telephone(live) as caller:
        async with page(live, caller):
            pass
        url = await ticket(live.runtime, organization_id, caller.call_id, "Ada", "control")
        assert await refused(live, url, "https://elsewhere.example"), "a foreign page"
        assert await refused(live, url, ""), "no page at all"
        assert not await refused(live, url), "refused origins do not use a ticket up"
        assert await refused(live, url), "used"
        assert await refused(live, url[:-1] + ("A" if url[-1] != "A" else "B")), "forged"
        stranger = await organizations.make()
        with pytest.raises(NotFound):
            await ticket(live.runtime, stranger.organization_id, caller.call_id, "Eve", "control")
        flushed = await ticket(live.runtime, organization_id, caller.call_id, "Ada", "control")
        await live.runtime.redis.flushall()
        assert await refused(live, flushed), "lost"
        monkeypatch.setattr(tickets, "TICKET_SECONDS", 1)
        late = await ticket(live.runtime, organization_id, caller.call_id, "Ada", "control")
        await asyncio.sleep(1.1)
        assert await refused(live, late), "expired"
    await live.ended(caller.call_id)
    with pytest.raises(InvalidState):
        await ticket(live.runtime, organization_id, caller.call_id, "Ada", "control")


async def test_redis_may_forget_everything_and_drop_its_subscribers(live: LivePlatform) -> None:
    async with telephone(live) as caller, page(live, caller) as ada:
        await ada.wait_for_message("state", agent="speaking")
        await live.runtime.redis.flushall()
        await live.runtime.redis.client_kill_filter(_type="pubsub")
        while not any(message.get("holder") for message in ada.messages):
            await ada.ask(type="take_over")
            await caller.phone.wait(0.5)
        await is_heard(ada, caller)


async def test_a_feed_ends_though_redis_is_away() -> None:
    async with Redis.from_url("redis://127.0.0.1:1") as nowhere:
        feed = RedisMonitorFeed(nowhere, uuid4())
        feed.send_end(EndedReason.CALLER_HUNG_UP)
        feed.send_audio(b"")
        feed.close()
        async with asyncio.timeout(20):
            await feed._sending


@asynccontextmanager
async def another_process(
    live: LivePlatform, servers: DataDirectory
) -> AsyncIterator[tuple[int, asyncio.subprocess.Process]]:
    """A server beside the one in this process, and its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    settings = {
        "DATA_DIR": str(live.runtime.settings.data_dir),
        "PORT": str(port),
        "PUBLIC_URL": live.runtime.settings.base_url,
        "DATABASE_URL": servers.database_url,
        "REDIS_URL": servers.redis_url,
    }
    environment = {**os.environ, **{f"SWITCHBOARD_{name}": value for name, value in settings.items()}}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "switchboard",
        "serve",
        env=environment,
        stderr=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(20):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                writer.close()
                break
        yield port, process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def test_the_page_may_be_at_another_process_than_the_call(live: LivePlatform, servers: DataDirectory) -> None:
    """If that process stops, the page is disconnected at once and still has the call after it reconnects elsewhere."""
    async with another_process(live, servers) as (port, process), telephone(live) as caller:
        async with page(live, caller, port=port) as ada:
            await ada.wait_for_message("state", holder=None)
            await ada.ask(type="take_over")
            await ada.wait_for_message("state", holder={"name": "Ada", "you": True})
            await is_heard(ada, caller)
            process.terminate()
            async with asyncio.timeout(20):
                assert await process.wait() == 0
            assert ada.socket.closed
        async with page(live, caller) as again:
            await again.wait_for_message("state", holder={"name": "Ada", "you": True})
