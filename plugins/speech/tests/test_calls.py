"""Whole calls through the platform's engine with each vendor: real speech both ways, and a socket that drops while the caller speaks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TypeAlias

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr
from switchboard.conversation.engine import CallEngine
from switchboard.plugins import ProviderSettings, SpeechToTextProvider, TextToSpeechProvider
from switchboard_speech.assemblyai import AssemblyAISettings, AssemblyAISpeechToText
from switchboard_speech.cartesia import CartesiaSettings, CartesiaTextToSpeech
from switchboard_speech.deepgram import DeepgramSettings, DeepgramSpeechToText, DeepgramTextToSpeech, DeepgramVoiceSettings
from switchboard_speech.elevenlabs import ElevenLabsSettings, ElevenLabsTextToSpeech

from tests.fixtures.conversation import Model, Socket, Transcriber, call
from tests.speech.assemblyai import AssemblyAI
from tests.speech.cartesia import Cartesia
from tests.speech.deepgram import Deepgram
from tests.speech.elevenlabs import ElevenLabs
from tests.speech.vendor import KEY, PHRASES, SENTENCE, Vendor, spoken

Ears: TypeAlias = SpeechToTextProvider[ProviderSettings]
Mouth: TypeAlias = TextToSpeechProvider[ProviderSettings]
SECRET = SecretStr(KEY)

EARS: dict[type[Vendor], Callable[[HttpUrl], Ears]] = {
    Deepgram: lambda url: DeepgramSpeechToText(DeepgramSettings(api_key=SECRET, base_url=url)),
    AssemblyAI: lambda url: AssemblyAISpeechToText(AssemblyAISettings(api_key=SECRET, base_url=url, api_url=url)),
}
MOUTHS: dict[type[Vendor], Callable[[HttpUrl], Mouth]] = {
    ElevenLabs: lambda url: ElevenLabsTextToSpeech(ElevenLabsSettings(api_key=SECRET, base_url=url)),
    Cartesia: lambda url: CartesiaTextToSpeech(CartesiaSettings(api_key=SECRET, base_url=url)),
    Deepgram: lambda url: DeepgramTextToSpeech(DeepgramVoiceSettings(api_key=SECRET, base_url=url)),
}


@pytest_asyncio.fixture
async def engine() -> AsyncIterator[CallEngine]:
    engine = CallEngine()
    await engine.start()
    yield engine
    await engine.close()


@pytest.mark.parametrize(("hears", "speaks"), [(Deepgram, ElevenLabs), (AssemblyAI, Cartesia), (Deepgram, Deepgram)])
async def test_a_call_is_heard_and_answered_though_the_socket_drops_in_mid_sentence(
    engine: CallEngine, hears: type[Vendor], speaks: type[Vendor]
) -> None:
    async with AsyncExitStack() as stack:
        ear, mouth = await stack.enter_async_context(hears.listening()), await stack.enter_async_context(speaks.listening())
        ears, voice = EARS[hears](HttpUrl(ear.address)), MOUTHS[speaks](HttpUrl(mouth.address))
        for provider in (ears, voice):
            await provider.open()
            stack.push_async_callback(provider.close)
        socket = Socket()
        live = replace(call(Model("Yes."), Transcriber()), speech_to_text=ears, text_to_speech=voice, hints=PHRASES)
        holding = asyncio.create_task(engine.hold(live, socket))
        talking = asyncio.create_task(socket.say(spoken()))
        await asyncio.sleep(0.7)
        await ear.drop()
        await talking
        async with asyncio.timeout(10):
            await socket.spoke.wait()
        # The caller listens for a second.
        await socket.say(b"\xff" * 4000)
        socket.hang_up()
        result = await holding
    assert [(entry.role, entry.content) for entry in result.transcript] == [("user", SENTENCE), ("agent", "Yes.")]
