"""Deepgram's `/v2/listen`, from its published messages and the order of its events.

https://developers.deepgram.com/reference/speech-to-text/listen-flux, https://developers.deepgram.com/docs/flux/state
"""

import json
from typing import Final

from aiohttp import WSMsgType, web

from tests.speech.vendor import is_quiet, recognize_mulaw

UPDATE_BYTES: Final = 2000
EAGER_SECONDS, END_SECONDS = 0.2, 0.4


class FluxSession:
    """One stream: a pause is probably the end of the turn after 0.2 seconds, and certainly after 0.4 if `ends`."""

    def __init__(self, socket: web.WebSocketResponse, query: dict[str, str], keyterms: tuple[str, ...]) -> None:
        self.ends = True
        self._socket = socket
        self._is_eager = "eager_eot_threshold" in query
        self._keyterms = keyterms
        self._audio = bytearray()
        self._spoken: list[str] = []
        self._segment: str | None = None
        self._state = "idle"
        self._turn = self._sequence = self._bytes = self._quiet = self._recognized = 0

    async def run(self) -> None:
        await self._send({"type": "Connected"})
        async for message in self._socket:
            if message.type is WSMsgType.BINARY:
                await self._hear(message.data)
            elif json.loads(message.data)["type"] == "CloseStream":
                await self._socket.close()
            elif "echo" in (said := json.loads(message.data)):
                await self._socket.send_str(said["echo"])
            else:
                await self._send({"type": "Error", "code": "UNPARSABLE_CLIENT_MESSAGE", "description": message.data})
                await self._socket.close()

    async def _hear(self, audio: bytes) -> None:
        before, self._bytes = self._bytes, self._bytes + len(audio)
        if is_quiet(audio):
            self._quiet += len(audio)
        else:
            self._quiet = 0
            await self._handle_voice()
        self._audio += audio
        if await self._judge_pause():
            return
        if before // UPDATE_BYTES != self._bytes // UPDATE_BYTES:
            await self._send_turn("Update")

    async def _handle_voice(self) -> None:
        if self._segment:
            self._spoken.append(self._segment)
        if self._segment is not None:
            self._segment = None
            self._audio.clear()
        if self._state == "idle":
            self._state = "ongoing"
            await self._send_turn("StartOfTurn")
        elif self._state == "awaiting":
            self._state = "ongoing"
            await self._send_turn("TurnResumed")

    async def _judge_pause(self) -> bool:
        if self._state == "idle" or not self._quiet:
            return False
        if self._segment is None:
            self._segment = recognize_mulaw(bytes(self._audio), self._keyterms)
        if not self._list_words():
            return False
        if self._quiet >= END_SECONDS * 8000 and self.ends:
            await self._send_turn("EndOfTurn", 0.8)
            self._turn, self._state, self._segment = self._turn + 1, "idle", None
            self._spoken.clear()
            self._audio.clear()
            return True
        if self._quiet >= EAGER_SECONDS * 8000 and self._is_eager and self._state == "ongoing":
            self._state = "awaiting"
            await self._send_turn("EagerEndOfTurn", 0.6)
            return True
        return False

    def _list_words(self) -> list[str]:
        words = " ".join([*self._spoken, self._segment or ""]).split()
        is_heard = self._state != "idle" and self._segment is None and len(self._audio) > 4000
        return words or (["can"] if is_heard else [])

    async def _send_turn(self, event: str, confidence: float = 0.1) -> None:
        words = self._list_words()
        if self._segment is not None or self._state == "idle":
            self._recognized = self._bytes
        await self._send({
            "type": "TurnInfo",
            "event": event,
            "turn_index": self._turn,
            "audio_window_start": 0.0,
            "audio_window_end": self._recognized / 8000,
            "transcript": " ".join(words),
            "words": [{"word": word, "confidence": 0.9} for word in words],
            "end_of_turn_confidence": confidence,
        })  # fmt: skip

    async def _send(self, message: dict[str, object]) -> None:
        await self._socket.send_json(message | {"request_id": "r", "sequence_id": self._sequence})
        self._sequence += 1
