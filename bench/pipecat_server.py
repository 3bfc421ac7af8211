"""Pipecat's server for `bench/calls`, run by a separate Python: FastAPI and uvicorn as in its examples, with the same
vendors and the same silence.

A turn ends by the same voice activity detection, without further waiting (`user_speech_timeout=0`) and without a turn
model.
"""

import asyncio
import json
import sys
from pathlib import Path

import aiohttp
import uvicorn
from fastapi import FastAPI, WebSocket
from loguru import logger
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.audio.vad.vad_analyzer import VADParams, VADState
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair, LLMUserAggregatorParams
from pipecat.serializers.twilio import TwilioFrameSerializer
from pipecat.services.deepgram.stt import DeepgramSTTService
from pipecat.services.elevenlabs.tts import ElevenLabsHttpTTSService
from pipecat.services.openai.llm import OpenAILLMService
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport
from pipecat.turns.user_stop import SpeechTimeoutUserTurnStopStrategy
from pipecat.turns.user_turn_strategies import UserTurnStrategies
from pipecat.workers.runner import WorkerRunner

RATE = 8000
FRAME_BYTES = 320


def create_analyzer() -> SileroVADAnalyzer:
    return SileroVADAnalyzer(
        sample_rate=RATE, params=VADParams(confidence=0.7, start_secs=0.2, stop_secs=0.2, min_volume=0.6)
    )


async def run_call(socket: WebSocket, number: str, vendors: str, session: aiohttp.ClientSession) -> None:
    """Run one call."""
    serializer = TwilioFrameSerializer("s", params=TwilioFrameSerializer.InputParams(auto_hang_up=False))
    transport = FastAPIWebsocketTransport(
        socket, FastAPIWebsocketParams(audio_in_enabled=True, audio_out_enabled=True, serializer=serializer)
    )
    stt = DeepgramSTTService(
        api_key="x", base_url=vendors, settings=DeepgramSTTService.Settings(model=f"nova-3-{number}")
    )
    settings = OpenAILLMService.Settings(model="gpt-4o-mini", system_instruction=f"Be brief on call-{number}")
    llm = OpenAILLMService(api_key="x", base_url=f"{vendors}/v1", settings=settings)
    tts = ElevenLabsHttpTTSService(
        api_key="x", base_url=vendors, aiohttp_session=session,
        settings=ElevenLabsHttpTTSService.Settings(voice=f"voice-{number}", model="eleven_flash_v2_5"),
    )  # fmt: skip
    strategies = UserTurnStrategies(stop=[SpeechTimeoutUserTurnStopStrategy(user_speech_timeout=0.0)])
    user_context, assistant_context = LLMContextAggregatorPair(
        LLMContext(),
        user_params=LLMUserAggregatorParams(user_turn_strategies=strategies, vad_analyzer=create_analyzer()),
    )
    worker = PipelineWorker(
        Pipeline([transport.input(), stt, user_context, llm, tts, transport.output(), assistant_context]),
        params=PipelineParams(audio_in_sample_rate=RATE, audio_out_sample_rate=RATE),
    )

    @transport.event_handler("on_client_disconnected")
    async def end_call(*_: object) -> None:
        await worker.cancel()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()


def serve(port: int, vendors: str) -> None:
    application = FastAPI()

    @application.websocket("/media/{number}")
    async def media(socket: WebSocket, number: str) -> None:
        await socket.accept()
        for _ in ("connected", "start"):
            await socket.receive_text()
        async with aiohttp.ClientSession() as session:
            await run_call(socket, number, vendors, session)

    uvicorn.run(application, host="127.0.0.1", port=port, log_level="warning", loop="uvloop")


async def find_turn_ends(samples: bytes) -> list[int]:
    """Return the 20 ms frames of 16-bit samples that end a turn."""
    judge, speaking, ends = create_analyzer(), False, []
    judge.set_sample_rate(RATE)
    for index in range(len(samples) // FRAME_BYTES):
        state = await judge.analyze_audio(samples[index * FRAME_BYTES : (index + 1) * FRAME_BYTES])
        if speaking and state is VADState.QUIET:
            ends.append(index)
        speaking = state in (VADState.SPEAKING, VADState.STOPPING)
    return ends


if __name__ == "__main__":
    logger.remove()
    logger.add(sys.stderr, level="ERROR")
    if sys.argv[1] == "ends":
        print(json.dumps(asyncio.run(find_turn_ends(Path(sys.argv[2]).read_bytes()))))
    else:
        serve(int(sys.argv[1]), sys.argv[2])
