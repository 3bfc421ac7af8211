"""Samples of voices, to hear one before it is chosen."""

import asyncio
import hashlib
import io
import json
import wave
from contextlib import suppress
from dataclasses import asdict, dataclass
from uuid import UUID

import structlog
from pydantic import BaseModel, ConfigDict, Field
from redis.asyncio import Redis
from redis.exceptions import RedisError

from switchboard.engine.conversation.media.conversion import Converter
from switchboard.engine.conversation.variables import Variables
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, new_id
from switchboard.foundation.web.errors import ProviderFailed, RateLimited
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.plugin_sdk import AudioFormat, ProviderError, SpeechRequest, TextToSpeechProvider
from switchboard.resources.billing import ledger
from switchboard.resources.billing.ledger import calculate_speech_cost
from switchboard.resources.identity.service import get_policy

logger = structlog.get_logger()
SAMPLE_LIMIT = Limit(per_second=0.2, burst=20)
SAMPLE_CHARACTERS, SAMPLE_SECONDS, KEPT_SECONDS = 120, 15.0, 3600
SENTENCE = "Hello, this is how I sound on the phone."


class VoiceSample(BaseModel):
    """A voice and a text, of which the first characters are spoken. Without a text it says a sentence of its own."""

    model_config = ConfigDict(extra="forbid")

    provider: str = Field(min_length=1, max_length=255)
    voice: str | None = Field(None, max_length=255)
    model: str | None = Field(None, max_length=255)
    language: str = Field("en-US", max_length=35)
    speed: float = Field(1.0, ge=0.5, le=2)
    text: str = Field("", max_length=100_000)

    def build_request(self) -> SpeechRequest:
        """Return the request to the provider."""
        spoken = Variables().fill(self.text).strip() or SENTENCE
        if len(spoken) > SAMPLE_CHARACTERS:
            spoken = spoken[:SAMPLE_CHARACTERS].rsplit(" ", 1)[0]
        return SpeechRequest(spoken, self.voice, self.model, self.language, self.speed)


@dataclass(frozen=True, slots=True)
class VoiceSampler:
    """Speaks samples through the organization's providers. A sample is kept in Redis for an hour."""

    database: Database
    redis: Redis
    limiter: RateLimiter
    providers: Providers

    async def speak(self, organization_id: UUID, sample: VoiceSample) -> bytes:
        """Return a sample as a WAV file; one that is not kept is charged like speech of a call.

        Raises `RateLimited`, `InsufficientBalance`, and `ProviderFailed`.
        """
        request = sample.build_request()
        request_parts = json.dumps([str(organization_id), sample.provider, asdict(request)])
        key = f"voice-sample:{hashlib.sha256(request_parts.encode()).hexdigest()}"
        with suppress(RedisError, OSError):
            if isinstance(kept := await self.redis.get(key), bytes):
                return kept
        if not (await self.limiter.check("voice-sample", str(organization_id), SAMPLE_LIMIT)).allowed:
            raise RateLimited("Too many voices at once. Wait a moment, then try again.")
        async with self.database.read(organization_id) as session:
            await ledger.require_solvency(session)
        try:
            async with (
                asyncio.timeout(SAMPLE_SECONDS),
                self.providers.use(organization_id, TextToSpeechProvider, sample.provider) as speaker,
            ):
                chunks = [chunk.audio async for chunk in speaker.synthesize(request)]
                source = speaker.audio_format
        except ProviderError as error:
            raise ProviderFailed(error.message) from None
        except TimeoutError:
            raise ProviderFailed(f"{sample.provider} did not answer in time.") from None
        audio = _write_wav(b"".join(chunks), source)
        async with self.database.write(organization_id) as session:
            prices = (await get_policy(session, organization_id)).prices
            cost = calculate_speech_cost(prices, len(request.text))
            await ledger.settle_hold(session, "simulation", new_id(), cost)
        try:
            await self.redis.set(key, audio, ex=KEPT_SECONDS)
        except (RedisError, OSError) as error:
            logger.warning("a voice sample is not kept: Redis cannot be reached", error=type(error).__name__)
        return audio


def _write_wav(audio: bytes, source: AudioFormat) -> bytes:
    target = AudioFormat("pcm16", source.sample_rate)
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(target.sample_rate)
        writer.writeframes(Converter(source, target).convert(audio, last=True))
    return file.getvalue()
