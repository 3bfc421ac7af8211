"""Azure Speech's servers: voices over REST, and transcription over the Universal Speech Protocol.

REST follows https://learn.microsoft.com/en-us/azure/ai-services/speech-service/rest-text-to-speech, and the WebSocket
`ServiceRecognizerBase` and `WebsocketMessageFormatter` of github.com/microsoft/cognitive-services-speech-sdk-js,
July 2026.
"""

import json
import struct
from dataclasses import dataclass, field
from uuid import UUID
from xml.etree import ElementTree as ET

from aiohttp import WSMsgType, web

from tests.speech.vendor import KEY, SpeechVendor, collect_synthesis, recognize_mulaw

REGION = "westeurope"
VOICES = {"en-US-AvaMultilingualNeural": "Ava", "de-DE-KatjaNeural": "Katja"}
REASONS = {401: "Access denied due to invalid subscription key", 404: "Voice not found", 429: "Too many requests"}
TICKS = 10_000_000
CHUNK = 2000
SPEECH = "{http://www.w3.org/2001/10/synthesis}"
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


@dataclass(slots=True)
class Utterance:
    """A request of the WebSocket: its context, whether its WAVE header came, and its audio."""

    context: dict[str, object]
    has_header: bool = False
    audio: bytearray = field(default_factory=bytearray)
    is_reported: bool = False


class AzureSpeech(SpeechVendor):
    """`faults` are the statuses with which the next phrases fail.

    `answers`: the end of a request's audio is answered. `ends_requests`: the server ends the next request itself, at
    once. `breaks` interrupts the next voice after its first chunk.
    """

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.answers = True
        self.ends_requests = self.breaks = False
        self.utterances: list[Utterance] = []
        self.config: dict[str, object] = {}
        self.spoken: list[ET.Element] = []
        self.connection_ids: list[UUID] = []

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/cognitiveservices/voices/list", self._voices),
            web.post("/cognitiveservices/v1", self._speak),
            web.get("/speech/recognition/conversation/cognitiveservices/v1", self._listen),
        ]

    def has_key(self, request: web.Request) -> bool:
        return request.headers.get("Ocp-Apim-Subscription-Key") == KEY

    def refusal(self, status: int) -> web.Response:
        error = {"code": str(status), "message": f"{REASONS.get(status, 'Internal error')} {KEY}"}
        return web.json_response({"error": error}, status=status)

    async def _voices(self, _: web.Request) -> web.Response:
        return web.json_response([
            {"Name": name, "ShortName": name, "DisplayName": title, "Locale": name[:5], "Gender": "Female"}
            for name, title in VOICES.items()
        ])  # fmt: skip

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        assert request.content_type == "application/ssml+xml"
        assert request.headers["X-Microsoft-OutputFormat"] == "raw-8khz-8bit-mono-mulaw"
        document = ET.fromstring(await request.text())  # noqa: S314 # our own request
        self.spoken.append(document)
        voice = document.find(f"{SPEECH}voice")
        assert voice is not None
        if voice.attrib["name"] not in VOICES:
            return self.refusal(404)
        prosody = voice.find(f".//{SPEECH}prosody")
        speed = 1.0 if prosody is None else float(prosody.attrib["rate"])
        audio, _ = await collect_synthesis("".join(voice.itertext()), speed)
        response = web.StreamResponse(headers={"Content-Type": "audio/basic"})
        await response.prepare(request)
        for at in range(0, len(audio), CHUNK):
            await response.write(audio[at : at + CHUNK])
            if self.breaks:
                self.breaks = False
                assert request.transport is not None
                request.transport.abort()
        await response.write_eof()
        return response

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        """Refuse a socket without a unique id, as
        https://docs.microsoft.com/azure/cognitive-services/speech/api-reference-rest/websocketprotocol says.
        """
        try:
            self.connection_ids.append(UUID(hex=request.headers["X-ConnectionId"]))
        except (KeyError, ValueError):
            return self.refusal(400)
        return await self._recognize(request)

    async def _recognize(self, request: web.Request) -> web.StreamResponse:
        assert (request.query["format"], request.query["wordLevelTimestamps"]) == ("detailed", "true")
        socket = await self.socket(request)
        requests: dict[str, Utterance] = {}
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                head, _, body = message.data.partition("\r\n\r\n")
                headers = _parse_headers(head)
                assert headers["Content-Type"] == "application/json"
                if headers["Path"] == "speech.config":
                    self.config = json.loads(body)
                else:
                    assert headers["Path"] == "speech.context"
                    requests[headers["X-RequestId"]] = utterance = Utterance(json.loads(body))
                    self.utterances.append(utterance)
                    await socket.send_str(
                        _build("turn.start", headers["X-RequestId"], {"context": {"serviceTag": "t"}})
                    )
            elif message.type is WSMsgType.BINARY:
                (length,) = struct.unpack(">H", message.data[:2])
                headers = _parse_headers(message.data[2 : 2 + length].decode())
                assert headers["Path"] == "audio"
                await self._hear(socket, headers, requests, message.data[2 + length :])
        return socket

    async def _hear(
        self, socket: web.WebSocketResponse, headers: dict[str, str], requests: dict[str, Utterance], audio: bytes
    ) -> None:
        request_id = headers["X-RequestId"]
        utterance = requests.get(request_id)
        if utterance is None:
            return  # The request has ended.
        if headers.get("Content-Type") == "audio/x-wav":
            assert struct.unpack("<HHI", audio[20:28]) == (7, 1, 8000)
            utterance.has_header = True
            return
        assert utterance.has_header
        utterance.audio += audio
        if len(utterance.audio) > 4000 and not utterance.is_reported:
            utterance.is_reported = True
            await socket.send_str(_build("speech.startDetected", request_id, {"Offset": 0}))
            await socket.send_str(_build("speech.hypothesis", request_id, {"Text": "can", "Offset": 0, "Duration": 1}))
        if self.faults:
            await socket.send_str(_build("speech.phrase", request_id, {"RecognitionStatus": self.faults.pop(0)}))
        elif self.ends_requests or (not audio and self.answers):
            self.ends_requests = False
            del requests[request_id]
            await self._answer(socket, request_id, recognize_mulaw(bytes(utterance.audio)))

    async def _answer(self, socket: web.WebSocketResponse, request_id: str, text: str) -> None:
        phrase: dict[str, object] = {"RecognitionStatus": "InitialSilenceTimeout", "Offset": 0, "Duration": 0}
        if text:
            words = [
                {"Word": word, "Offset": TICKS // 2 + at * TICKS // 10, "Duration": TICKS // 10}
                for at, word in enumerate(text.split())
            ]
            best = {"Confidence": 0.9, "Lexical": text, "ITN": text, "MaskedITN": text, "Display": text, "Words": words}
            phrase = {"RecognitionStatus": "Success", "Offset": TICKS // 2, "Duration": TICKS, "NBest": [best]}
        await socket.send_str(_build("speech.phrase", request_id, phrase))
        await socket.send_str(_build("turn.end", request_id, {}))


def _parse_headers(head: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in head.split("\r\n") if line)


def _build(path: str, request_id: str, body: dict[str, object]) -> str:
    return f"X-RequestId:{request_id.upper()}\r\nContent-Type:application/json\r\nPath:{path}\r\n\r\n{json.dumps(body)}"
