"""Server of `bench/traces` and `bench/turn_density`: the call engine behind hypercorn as in production, with providers
that respond at once.

Arguments are the port, the core, and, for turns that are judged, a mode of `turn_detection`. Turns are then detected by
Smart Turn in its process, which stays on the same core. Without the mode they end by silence.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Literal, cast
from uuid import uuid4

import uvloop
from hypercorn.asyncio import serve
from hypercorn.config import Config
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from pydantic import SecretStr
from switchboard.engine.conversation.agent_settings import AgentSettings, TurnDetection
from switchboard.engine.conversation.call import (
    CallAgent,
    HandoffRecord,
    Intervention,
    LiveCall,
    SpeechRenderer,
    Supervisor,
    TranscriptEntry,
    TurnLatency,
    VariableRecord,
)
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.disclosure.disclosure import ConsentRecord
from switchboard.engine.providers.failover import (
    HEDGE_AFTER_SECONDS,
    FailoverLLM,
    FailoverSpeechToText,
    FailoverTextToSpeech,
)
from switchboard.engine.providers.health import ServiceRecord
from switchboard.engine.providers.turn_prediction import DeadlineTurnPredictor
from switchboard.foundation.observability.span_export import export_spans
from switchboard.plugin_sdk import (
    ChatEvent,
    ChatRequest,
    LLMProvider,
    ModelUsage,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    SpeechToTextProvider,
    SpeechToTextStream,
    TextDelta,
    TextToSpeechProvider,
    Transcript,
    TranscriptionRequest,
    Voice,
)
from switchboard.resources.calls.media.media_socket import AsgiMediaSocket
from switchboard_offline.espeak import speak_text
from switchboard_offline.loopback import LoopbackSettings, LoopbackTelephony
from switchboard_turn_smart.detector import SmartTurnDetector

from tests.fixtures.conversation import list_candidates

REPLY = speak_text(
    "We are open from seven to six, but not on Sundays, and our bread is baked twice a day in the house."
)


class _Stream(SpeechToTextStream):
    def __init__(self) -> None:
        self._finals: asyncio.Queue[Transcript | None] = asyncio.Queue()

    async def send(self, audio: bytes) -> None:
        """Drop the audio."""

    async def finalize(self) -> None:
        self._finals.put_nowait(Transcript("what are your opening hours", is_final=True, finalized=True))

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        while (final := await self._finals.get()) is not None:
            yield final

    async def close(self) -> None:
        self._finals.put_nowait(None)


class InstantSpeechToText(SpeechToTextProvider[ProviderSettings]):
    name = title = "instant"

    async def check(self) -> None:
        """Succeed always."""

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        return _Stream()


class InstantVoice(TextToSpeechProvider[ProviderSettings]):
    name = title = "instant"

    async def check(self) -> None:
        """Succeed always."""

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        for start in range(0, len(REPLY), 3200):
            yield SpeechChunk(REPLY[start : start + 3200])

    async def list_voices(self) -> Sequence[Voice]:
        return []


class InstantModel(LLMProvider[ProviderSettings]):
    name = title = "instant"

    async def check(self) -> None:
        """Succeed always."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        yield TextDelta("An answer.")
        yield ModelUsage("instant", 1, 1)


class NullLeg:
    """Carrier leg and call log without a carrier or a database."""

    async def hang_up(self) -> None:
        """Do nothing."""

    async def transfer(self, to_number: str) -> None:
        """Do nothing."""

    async def introduce(self, to_number: str, text: str, language: str, render: SpeechRenderer) -> str:
        """Do nothing."""
        return "target"

    async def connect(self, target_call_id: str) -> None:
        """Do nothing."""

    async def hang_up_target(self, target_call_id: str) -> None:
        """Do nothing."""

    async def send_text(self, body: str, to_number: str | None) -> None:
        """Do nothing."""

    async def send_digits(self, digits: str) -> None:
        """Do nothing."""

    def record_entry(self, entry: TranscriptEntry) -> None:
        """Do nothing."""

    def record_unfinished(self, entry: TranscriptEntry) -> None:
        """Do nothing."""

    def record_consent(self, consent: ConsentRecord) -> None:
        """Do nothing."""

    def record_latency(self, latency: TurnLatency) -> None:
        """Do nothing."""

    def record_takeover(self, supervisor: Supervisor | None) -> None:
        """Do nothing."""

    def record_whisper(self, supervisor: Supervisor) -> None:
        """Do nothing."""

    def record_handoff(self, handoff: HandoffRecord) -> None:
        """Do nothing."""

    def record_variable(self, variable: VariableRecord) -> None:
        """Do nothing."""

    def record_intervention(self, intervention: Intervention) -> None:
        """Do nothing."""


async def main(port: int, core: int, mode: Literal["silence", "text", "audio", "auto"]) -> None:
    os.sched_setaffinity(0, {core})
    detector = SmartTurnDetector(ProviderSettings())
    if mode in ("audio", "auto"):
        await detector.open()
    predictor = DeadlineTurnPredictor(list_candidates(detector), ServiceRecord())
    engine, settings, leg = CallEngine(), ProviderSettings(), NullLeg()
    hearing, speaking = list_candidates(InstantSpeechToText(settings)), list_candidates(InstantVoice(settings))
    thinking, hedge = list_candidates(InstantModel(settings)), {"hedge_after_seconds": HEDGE_AFTER_SECONDS}
    carrier = LoopbackTelephony(LoopbackSettings(signing_secret=SecretStr("x" * 32)))
    await engine.start()
    with tempfile.TemporaryDirectory() as folder:

        async def application(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
            if scope["type"] != "websocket":
                return
            await receive()
            await send({"type": "websocket.accept", "subprotocol": None, "headers": []})
            call_id = uuid4()
            call = LiveCall(
                call_id=call_id,
                organization_id=uuid4(),
                direction="inbound",
                from_number="+15550100001",
                to_number="+15550100200",
                agent=CallAgent(
                    uuid4(),
                    "Agent",
                    AgentSettings(interruption_min_words=10, turn_detection=TurnDetection(mode=mode)),
                    FailoverSpeechToText(hearing, ServiceRecord(), **hedge),
                    FailoverTextToSpeech(speaking, ServiceRecord(), **hedge),
                    FailoverLLM(thinking, ServiceRecord(), **hedge),
                    turn_predictor=predictor,
                ),
                codec=carrier.create_media_codec(""),
                leg=leg,
                log=leg,
                recording_path=Path(folder) / f"{call_id}.wav",
            )
            await engine.run_call(call, AsgiMediaSocket(receive, send))

        config = Config()
        config.bind = [f"127.0.0.1:{port}"]
        config.backlog = 2048
        config.websocket_ping_interval = None
        await serve(application, config)


if __name__ == "__main__":
    with export_spans("serve"):  # only if the environment has an endpoint
        mode = cast("Literal['silence', 'text', 'audio', 'auto']", sys.argv[3] if len(sys.argv) > 3 else "silence")
        uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), mode))
