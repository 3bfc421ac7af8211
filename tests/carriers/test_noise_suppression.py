"""Noise suppression of calls over Twilio's wire, as Deepgram's stand-in and the recording hear them."""

import wave
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from aiohttp import WSMsgType, web
from pydantic import JsonValue
from switchboard.engine.providers.configuration import ProviderSpec
from switchboard.plugin_sdk.audio import Samples, decode_audio, encode_audio
from switchboard.plugin_sdk.registry import Capability
from switchboard.runtime import Runtime
from switchboard_offline.loopback.persons import Person, synthesize_mulaw
from switchboard_offline.loopback.phone import Phone

from tests.carriers.lines import PERSON, open_twilio_line, wait_for_only_call
from tests.carriers.twilio.server import TwilioLeg
from tests.fixtures.app import Organizations
from tests.speech.deepgram import Deepgram
from tests.speech.vendor import KEY

FRAME, WINDOW, PAUSE = 160, 256, 8000
NOISE_AMPLITUDE = 400
"""About 26 dB below the voice: quiet enough that voice activity detection finds the pauses."""


class AttentiveDeepgram(Deepgram):
    """Deepgram that keeps the audio, and recognizes no words."""

    def __init__(self) -> None:
        super().__init__()
        self.audio = b""

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        socket = await self.socket(request)
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                self.audio += message.data
        return socket


@dataclass(frozen=True, slots=True)
class HeardCall:
    """The caller's audio of one call, sent and transcribed in μ-law, and recorded as samples."""

    sent: bytes
    transcribed: bytes
    recorded: Samples

    @property
    def is_recorded_as_sent(self) -> bool:
        """Return whether the recording has a fifth of a second of the speech as it was sent."""
        piece = decode_audio(self.sent, "mulaw")[PAUSE : PAUSE + 1600]
        return piece.tobytes() in self.recorded.tobytes()


async def make_noisy_call(runtime: Runtime, organizations: Organizations, **agent: JsonValue) -> HeardCall:
    """Let a caller in noise speak with an agent."""
    voice = decode_audio(await synthesize_mulaw("I would like to order two loaves of bread for tomorrow"), "mulaw")
    noise = np.random.default_rng(1).normal(0, NOISE_AMPLITUDE, 2 * PAUSE + len(voice))
    noise[PAUSE:-PAUSE] += voice
    noisy = encode_audio(np.clip(noise, -32768, 32767).astype(np.int16), "mulaw")

    def connect(_leg: TwilioLeg) -> Person:
        async def behave(phone: Phone) -> None:
            await phone.say(noisy)

        return behave

    async with AttentiveDeepgram.listening() as deepgram:
        account: dict[str, JsonValue] = {"api_key": KEY, "base_url": deepgram.address}
        transcriber = ProviderSpec(Capability.SPEECH_TO_TEXT, "deepgram", account)
        async with open_twilio_line(runtime, organizations, transcriber) as (line, twilio):
            path = f"/v1/agents/{line.live.agent_id}"
            settings = {"greeting_message": "", "turn_detection": {"mode": "text"}, **agent}
            assert (await line.live.caller.send("PUT", path, settings)).status == 200
            await twilio.connect_person(PERSON, line.live.number, connect)
            call = await wait_for_only_call(line.live)
            recording = await line.live.wait_for_recording(call["id"])
    with wave.open(BytesIO(recording)) as file:
        frames = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").reshape(-1, 2)
    return HeardCall(noisy, deepgram.audio, frames[:, 0].astype(np.int16))


def measure_noise(audio: bytes) -> float:
    """Return the root mean square of the quietest tenth of the frames."""
    samples = decode_audio(audio[: len(audio) // FRAME * FRAME], "mulaw").astype(float).reshape(-1, FRAME)
    return float(np.percentile(np.sqrt(np.mean(np.square(samples), axis=1)), 10))


async def test_the_transcriber_hears_less_noise_with_rnnoise_and_the_recording_as_much(
    runtime: Runtime, organizations: Organizations
) -> None:
    call = await make_noisy_call(runtime, organizations, noise_suppression="rnnoise")
    assert len(call.transcribed) > 8000
    assert measure_noise(call.sent) > NOISE_AMPLITUDE * 0.8
    assert measure_noise(call.transcribed) < NOISE_AMPLITUDE * 0.1
    assert call.is_recorded_as_sent


async def test_without_suppression_the_transcriber_hears_what_the_caller_sent(
    runtime: Runtime, organizations: Organizations
) -> None:
    call = await make_noisy_call(runtime, organizations)
    assert len(call.transcribed) > 8000
    windows = [call.transcribed[at : at + WINDOW] for at in range(0, len(call.transcribed), WINDOW)]
    assert all(window in call.sent for window in windows)
    assert call.is_recorded_as_sent
