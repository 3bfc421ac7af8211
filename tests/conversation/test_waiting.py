"""Callers who wait for a person, on real audio with the real voice activity detection."""

import asyncio
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest
from switchboard.engine.conversation.call import CallResult, EndedReason, LiveCall, Supervisor
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.waiting import (
    CALLBACK_INSTRUCTION,
    UNANSWERED_CALLBACK_INSTRUCTION,
    UNANSWERED_INSTRUCTION,
)
from switchboard.plugin_sdk import ToolCall

from tests.fixtures.conversation import (
    Model,
    QuietFeed,
    Socket,
    Speech,
    Transcriber,
    change_agent,
    create_call,
    synthesize_caller,
)

JOINED = "join Ada wants to change an order."
ASK = ToolCall("c1", "ask_for_person", {"reason": "Ada wants to change an order."})


@dataclass
class Queue:
    """A queue in memory."""

    staffed: bool = True
    number: bool = True
    position: int = 1
    done: list[str] = field(default_factory=list)
    joined: asyncio.Event = field(default_factory=asyncio.Event)

    async def is_staffed(self) -> bool:
        return self.staffed

    async def join(self, reason: str) -> None:
        self.done.append(f"join {reason}")
        self.joined.set()

    async def get_position(self) -> int:
        return self.position

    async def leave(self, *, callback: bool) -> bool:
        self.done.append("callback" if callback else "leave")
        return callback and self.number


@dataclass
class WaitingCall:
    """A call whose agent asks for a person after the caller's first words."""

    engine: CallEngine
    live: LiveCall
    queue: Queue
    speech: Speech
    model: Model
    socket: Socket
    holding: asyncio.Task[CallResult]

    async def hang_up(self) -> CallResult:
        self.socket.hang_up()
        async with asyncio.timeout(60):
            return await self.holding

    def list_spoken(self) -> list[str]:
        return [request.text for request in self.speech.requests]

    def list_instructions(self) -> list[str]:
        return [message.content for message in self.model.requests[-1].messages if message.role == "system"]


async def start_waiting(
    engine: CallEngine, queue: Queue, *words: str, seconds: int = 60, fallback: str = "agent"
) -> WaitingCall:
    model, speech = Model(ASK, "One moment.", "I go on."), Speech()
    call = create_call(
        model, Transcriber("a person please", *words), queue_wait_seconds=seconds, queue_fallback=fallback
    )
    live = replace(change_agent(call, text_to_speech=speech), queue=queue)
    socket = Socket()
    waiting = WaitingCall(
        engine, live, queue, speech, model, socket, asyncio.create_task(engine.run_call(live, socket))
    )
    await socket.say(synthesize_caller("A person please."))
    return waiting


async def test_a_caller_waits_with_music_and_a_person_takes_over(engine: CallEngine) -> None:
    waiting = await start_waiting(engine, Queue(position=2))
    await waiting.queue.joined.wait()
    await asyncio.sleep(9)
    assert waiting.queue.done == [JOINED]
    assert any("You are number two" in text and "Press one" in text for text in waiting.list_spoken())
    before = waiting.socket.messages.count("media")
    await asyncio.sleep(3)
    assert waiting.socket.messages.count("media") - before >= 28, "music plays without a gap"
    session = engine.find_session(waiting.live.call_id)
    assert session is not None
    monitor, ada = uuid4(), Supervisor(uuid4(), "Ada")
    session.supervision.attach(monitor, ada, 0, QuietFeed, may_control=True)
    session.supervision.take_over(monitor)
    await asyncio.sleep(0.5)
    before = waiting.socket.messages.count("media")
    await asyncio.sleep(3)
    assert waiting.socket.messages.count("media") == before, "the music ends"
    result = await waiting.hang_up()
    assert result.ended_reason is EndedReason.TAKEN_OVER
    assert waiting.queue.done == [JOINED], "the takeover ends the wait"
    assert "The caller waits for a person." in [entry.content for entry in result.transcript]


async def test_a_new_position_is_announced(engine: CallEngine) -> None:
    queue = Queue(position=3)
    waiting = await start_waiting(engine, queue)
    await queue.joined.wait()
    await asyncio.sleep(8)
    queue.position = 1
    await asyncio.sleep(35)
    await waiting.hang_up()
    assert [text.split(" in ")[0] for text in waiting.list_spoken() if "number" in text] == [
        "You are number three",
        "You are number one",
    ]


@pytest.mark.parametrize("way", ["key", "words"])
async def test_a_caller_asks_for_a_callback(engine: CallEngine, way: str) -> None:
    waiting = await start_waiting(engine, Queue(), "please call me back")
    await waiting.queue.joined.wait()
    await asyncio.sleep(8)
    if way == "key":
        waiting.socket.press("1")
    else:
        await waiting.socket.say(synthesize_caller("Please call me back."))
    await asyncio.sleep(4)
    assert waiting.queue.done == [JOINED, "callback"]
    assert CALLBACK_INSTRUCTION in waiting.list_instructions()
    assert "I go on." in waiting.list_spoken()
    await waiting.hang_up()


@pytest.mark.parametrize(("fallback", "noted"), [("agent", "leave"), ("callback", "callback")])
async def test_the_agent_goes_on_if_nobody_comes(engine: CallEngine, fallback: str, noted: str) -> None:
    waiting = await start_waiting(engine, Queue(), seconds=20, fallback=fallback)
    await waiting.queue.joined.wait()
    await asyncio.sleep(25)
    assert waiting.queue.done == [JOINED, noted]
    expected = UNANSWERED_INSTRUCTION if fallback == "agent" else UNANSWERED_CALLBACK_INSTRUCTION
    assert expected in waiting.list_instructions()
    assert waiting.list_spoken()[-1] == "I go on."
    await waiting.hang_up()


async def test_nobody_waits_in_a_queue_that_nobody_follows(engine: CallEngine) -> None:
    waiting = await start_waiting(engine, Queue(staffed=False))
    await asyncio.sleep(4)
    assert waiting.queue.done == []
    assert "nobody is available now" in str(waiting.model.requests[-1].messages[-1].content)
    await waiting.hang_up()


async def test_agents_without_a_queue_cannot_ask_for_a_person(engine: CallEngine) -> None:
    model = Model("Yes.")
    live, socket = create_call(model, Transcriber("a person please")), Socket()
    holding = asyncio.create_task(engine.run_call(live, socket))
    await socket.say(synthesize_caller("A person please."))
    await asyncio.sleep(3)
    socket.hang_up()
    await holding
    assert "ask_for_person" not in [tool.name for tool in model.requests[0].tools]


async def test_a_callback_begins_with_a_person_and_not_with_the_greeting(engine: CallEngine) -> None:
    queue, speech = Queue(), Speech()
    call = create_call(Model("Sorry."), Transcriber(), greeting_message="Hello, I am the agent.")
    live, socket = replace(change_agent(call, text_to_speech=speech), queue=queue, begins_with_person=True), Socket()
    holding = asyncio.create_task(engine.run_call(live, socket))
    await queue.joined.wait()
    await asyncio.sleep(2)
    assert not speech.requests
    assert socket.messages.count("media") > 10
    await asyncio.sleep(22)
    assert [request.text for request in speech.requests] == ["Sorry."], "nobody spoke, so the agent does"
    socket.hang_up()
    await holding
