"""Preemptive generation: the model is asked when a turn may be over, and its answer is held until the turn is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    LLMProvider,
    ModelUsage,
    ProviderError,
    ProviderSettings,
    TextDelta,
)

CHARACTERS_PER_TOKEN: Final = 4
"""Estimate for a request that was dropped before the vendor reported its usage, in English text."""


class TaskStarter(Protocol):
    """Starts a task of the call (`CallLifetime.start`)."""

    def __call__(self, work: Callable[[], Awaitable[None]], /) -> asyncio.Task[None] | None: ...


@dataclass(slots=True, eq=False)
class _HeldAnswer:
    """An answer to a turn that may be over. None ends its events."""

    text: str
    request: ChatRequest | None = None
    task: asyncio.Task[None] | None = None
    events: asyncio.Queue[ChatEvent | ProviderError | None] = field(default_factory=asyncio.Queue)
    received: list[ChatEvent] = field(default_factory=list)


class PreemptiveGeneration:
    """Holds the answer to at most one request, which is used if the very same request is made once the turn is over.

    Tools that the model calls are run by the code that takes the answer, so none runs before. `dropped` has the usage
    of answers that were not taken, estimated where the vendor has not reported it.
    """

    def __init__(self, llm: LLMProvider[ProviderSettings]) -> None:
        self._llm = llm
        self._held: _HeldAnswer | None = None
        self.dropped: list[ModelUsage] = []

    def begin(self, text: str, build: Callable[[], Awaitable[ChatRequest]], start: TaskStarter) -> None:
        """Build the request for a turn and ask the model, unless its answer to the same words is held already."""
        if self._held is not None and self._held.text == text:
            return
        self.drop()
        held = self._held = _HeldAnswer(text)

        async def generate() -> None:
            held.request = await build()
            await self._generate(held, held.request)

        held.task = start(generate)

    async def _generate(self, held: _HeldAnswer, request: ChatRequest) -> None:
        try:
            async for event in self._llm.chat(request):
                held.received.append(event)
                held.events.put_nowait(event)
        except ProviderError as error:
            held.events.put_nowait(error)
        held.events.put_nowait(None)

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        """Yield the held answer to this request, or else ask the model. Raises `ProviderError`."""
        held = self._held
        if held is None or held.request != request:
            self.drop()
            async for event in self._llm.chat(request):
                yield event
            return
        self._held = None
        try:
            while (held_event := await held.events.get()) is not None:
                if isinstance(held_event, ProviderError):
                    raise held_event
                yield held_event
        finally:
            if held.task is not None:
                held.task.cancel()

    def drop(self) -> None:
        """Stop and forget the answer that is held, because the caller went on, and record its usage."""
        held, self._held = self._held, None
        if held is None:
            return
        if held.task is not None:
            held.task.cancel()
        if held.request is not None:
            reported = [event for event in held.received if isinstance(event, ModelUsage)]
            self.dropped += reported or [_estimate_usage(held.request, held.received)]


def _estimate_usage(request: ChatRequest, received: list[ChatEvent]) -> ModelUsage:
    asked = sum(len(message.content) for message in request.messages)
    answered = sum(len(event.text) for event in received if isinstance(event, TextDelta))
    return ModelUsage(
        request.model or "",
        input_tokens=asked // CHARACTERS_PER_TOKEN,
        output_tokens=answered // CHARACTERS_PER_TOKEN,
        detail={"estimated": True},
    )
