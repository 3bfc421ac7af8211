"""No call holds the event loop for long: large results of tools, large passages, and long answers."""

import asyncio
import time
from asyncio.events import Handle
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import pytest
from pydantic import JsonValue
from switchboard.engine.conversation.call import CallResult, LiveCall
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.toolbox import RESULT_CHARACTERS
from switchboard.engine.redaction.detectors import BUILT_IN
from switchboard.engine.redaction.redactor import Redactor
from switchboard.plugin_sdk import (
    AgentTool,
    JsonObject,
    SpeechChunk,
    SpeechRequest,
    ToolCall,
    ToolContext,
    ToolParameters,
)

from tests.fixtures.conversation import Model, Socket, Speech, Transcriber, change_agent, create_call, synthesize_caller

pytestmark = pytest.mark.usefixtures("task_check")
MOST_SECONDS = 0.012
"""Five milliseconds on a quiet machine, whose second core makes them up to nine. Undivided, the work takes 17 to 42."""
ATTEMPTS = 5
"""The first call of a process imports and compiles, and on a busy machine the same work takes three times as long."""
LOOKS_UP = ToolCall("1", "look_up", {})
SENTENCE = "The bakery on the corner is open from seven to six every day of the week. "


class ShortSpeech(Speech):
    """Text-to-speech that says nothing for long."""

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        yield SpeechChunk(bytes(320))


class LargeTool(AgentTool[ToolParameters]):
    """Tool with so many characters of JSON as its result."""

    name, description, Parameters = "look_up", "Look it up.", ToolParameters

    def __init__(self, characters: int) -> None:
        row: JsonValue = {"id": 1, "name": "Ada Lovelace", "open": True, "price": 1.5}
        self._result: JsonObject = {"rows": [row] * (characters // 70)}

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        return self._result


class LargeShelf:
    """Knowledge with passages of so many characters."""

    def __init__(self, characters: int) -> None:
        self._passage = SENTENCE * (characters // len(SENTENCE))

    async def find_passages(self, question: str, *, limit: int) -> Sequence[str]:
        return [self._passage] * limit


@pytest.fixture
def held() -> Iterator[dict[str, float]]:
    """Longest processor time of the event loop's callbacks, by their code."""
    found: dict[str, float] = {}
    run = Handle._run

    def measure(handle: Handle) -> None:
        began = time.thread_time()
        run(handle)
        name = repr(handle)
        found[name] = max(found.get(name, 0.0), time.thread_time() - began)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Handle, "_run", measure)
        yield found


def build_redactor() -> Redactor:
    detectors = [detector() for detector in BUILT_IN]
    return Redactor(detectors, frozenset(detector.name for detector in detectors))


async def run_call(engine: CallEngine, live: LiveCall) -> CallResult:
    """Ask a question, and hang up once it is answered."""
    socket = Socket()
    running = asyncio.create_task(engine.run_call(live, socket))
    await socket.say(synthesize_caller("What are your opening hours?"))
    await asyncio.sleep(10)
    socket.hang_up()
    return await running


CASES: dict[str, tuple[tuple[str | ToolCall, ...], Callable[[], dict[str, object]]]] = {
    "a result of a tool": ((LOOKS_UP, "Yes."), lambda: {"tools": (LargeTool(RESULT_CHARACTERS * 8 // 10),)}),
    "a redacted result": (
        (LOOKS_UP, "Yes."),
        lambda: {"tools": (LargeTool(20_000),), "redactor": build_redactor()},
    ),
    "a result of a megabyte": ((LOOKS_UP, "Yes."), lambda: {"tools": (LargeTool(1_000_000),)}),
    "passages": (("Yes.",), lambda: {"knowledge": LargeShelf(100_000)}),
    "an answer in one piece": ((SENTENCE * 300,), dict),
    "an answer without a full stop": ((SENTENCE.replace(".", "") * 300,), dict),
}


@pytest.mark.parametrize("name", CASES)
async def test_no_call_holds_the_event_loop(engine: CallEngine, held: dict[str, float], name: str) -> None:
    answers, changes = CASES[name]
    longest = []
    for _ in range(ATTEMPTS):
        model = Model(*answers)
        call = create_call(model, Transcriber("what are your opening hours"))
        held.clear()
        await run_call(engine, change_agent(call, text_to_speech=ShortSpeech(), **changes()))
        assert len(model.requests) == len(answers), "the caller was answered"
        longest.append(max(held.values()))
        if longest[-1] <= MOST_SECONDS:
            return
    raise AssertionError(f"{name} held the event loop for {longest} seconds")
