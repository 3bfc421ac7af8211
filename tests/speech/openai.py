"""A server with OpenAI's protocol: models, transcription of whole files, and speech as raw 24 kHz samples."""

import io
import wave

import numpy as np
from aiohttp import BodyPartReader, web
from switchboard.plugin_sdk.audio import encode_audio
from switchboard_offline.espeak import speak_text

from tests.speech.vendor import KEY, SpeechVendor, recognize_mulaw

VOICES = ("alloy", "echo")


class OpenAI(SpeechVendor):
    """`lists_voices`: the server has the list of voices that some servers have.

    `usage` goes with a transcription, as the server counts it
    (https://platform.openai.com/docs/api-reference/audio/json-object; llama.cpp's lacks the details). A `broken` server
    answers with another format. `models` is its list of models.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lists_voices = True
        self.usage: dict[str, object] | None = None
        self.broken = False
        self.models: list[dict[str, object]] = []
        self.forms: list[dict[str, str]] = []

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/models", self._models),
            web.get("/v1/audio/voices", self._voices),
            web.post("/v1/audio/transcriptions", self._transcribe),
            web.post("/openai/v1/audio/transcriptions", self._transcribe),
            web.post("/openai/deployments/{model}/audio/transcriptions", self._transcribe),
            web.post("/v1/audio/speech", self._speak),
        ]

    def has_key(self, request: web.Request) -> bool:
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return KEY in (request.headers.get("api-key"), bearer)

    def refusal(self, status: int) -> web.Response:
        code = {401: "invalid_api_key", 429: "rate_limit_exceeded"}.get(status, "server_error")
        return web.json_response({"error": {"message": f"{code}: {KEY}", "type": "error", "code": code}}, status=status)

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": self.models})

    async def _voices(self, _: web.Request) -> web.Response:
        return web.json_response({"voices": VOICES}) if self.lists_voices else web.Response(status=404)

    async def _transcribe(self, request: web.Request) -> web.Response:
        form, audio = dict[str, str](), b""
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            if part.name == "file":
                audio = bytes(await part.read())
            else:
                form[part.name or ""] = await part.text()
        self.forms.append(form)
        with wave.open(io.BytesIO(audio)) as file:
            assert file.getparams()[:3] == (1, 2, 8000)
            samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
        hints = tuple(form["prompt"].split(", ")) if "prompt" in form else ()
        if self.broken:
            return web.json_response({"result": []})
        text = f" {recognize_mulaw(encode_audio(samples, 'mulaw'), hints)} "
        return web.json_response({"text": text, **({"usage": self.usage} if self.usage else {})})

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        body = self.requests[-1].body
        assert body["response_format"] == "pcm"
        if body["voice"] not in VOICES:
            return web.json_response(
                {"error": {"message": f"Invalid voice {body['voice']}", "type": "e", "code": None}}, status=400
            )
        response = web.StreamResponse(headers={"Content-Type": "audio/pcm"})
        await response.prepare(request)
        audio = speak_text(str(body["input"]), speed=float(str(body.get("speed", 1))), sample_rate=24_000)
        for at in range(0, len(audio), 4801):
            await response.write(audio[at : at + 4801])
        await response.write_eof()
        return response
