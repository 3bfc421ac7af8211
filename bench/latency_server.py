"""Switchboard's server of `bench/latency`: the call engine behind hypercorn as in production, with vendors' plugins."""

import os
import sys
from uuid import uuid4

import uvloop
from hypercorn.asyncio import serve
from hypercorn.config import Config
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from pydantic import HttpUrl, SecretStr
from switchboard.engine.conversation.call import AgentSettings, LiveCall, TurnDetectionSettings
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.providers.failover import (
    HEDGE_AFTER_SECONDS,
    FailoverLLM,
    FailoverSpeechToText,
    FailoverTextToSpeech,
)
from switchboard.engine.providers.service_record import ServiceRecord
from switchboard.resources.calls.media.media_socket import AsgiMediaSocket
from switchboard_llm.models import MODELS
from switchboard_llm.vendor_model import ModelSettings
from switchboard_speech.deepgram import DeepgramSettings, DeepgramSpeechToText
from switchboard_speech.elevenlabs import ElevenLabsSettings, ElevenLabsTextToSpeech
from switchboard_telephony_twilio.codec import TwilioCodec

from bench.calls_server import NullLeg
from bench.vendors_server import MODEL
from tests.fixtures.conversation import list_candidates

SECRET = SecretStr("x")


async def main(port: int, core: int, vendors: str) -> None:
    os.sched_setaffinity(0, {core})
    engine, leg = CallEngine(), NullLeg()
    model = next(kind for kind in MODELS if kind.name == "openai_compatible")(
        ModelSettings(api_key=SECRET, base_url=f"{vendors}/v1")
    )
    stt = DeepgramSpeechToText(DeepgramSettings(api_key=SECRET, base_url=HttpUrl(vendors)))
    tts = ElevenLabsTextToSpeech(ElevenLabsSettings(api_key=SECRET, base_url=HttpUrl(vendors)))
    for provider in (model, stt, tts):
        await provider.open()
    await engine.start()

    async def application(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "websocket":
            return
        await receive()
        await send({"type": "websocket.accept", "subprotocol": None, "headers": []})
        number = scope["path"].rpartition("/")[2]
        agent = AgentSettings(
            uuid4(),
            f"Be brief on call-{number}",
            llm_model=MODEL,
            tts_voice_id=f"voice-{number}",
            stt_model=f"nova-3-{number}",
            interruption_min_words=10,
            turn_detection=TurnDetectionSettings("silence"),
        )
        record = ServiceRecord()
        call = LiveCall(
            uuid4(),
            uuid4(),
            "inbound",
            "+15550100001",
            "+15550100200",
            agent,
            FailoverSpeechToText(list_candidates(stt), record, hedge_after_seconds=HEDGE_AFTER_SECONDS),
            FailoverTextToSpeech(list_candidates(tts), record, hedge_after_seconds=HEDGE_AFTER_SECONDS),
            FailoverLLM(list_candidates(model), record, hedge_after_seconds=HEDGE_AFTER_SECONDS),
            TwilioCodec("token"),
            leg,
            leg,
        )
        await engine.run_call(call, AsgiMediaSocket(receive, send))

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.websocket_ping_interval = None
    await serve(application, config)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
