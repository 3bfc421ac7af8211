"""A call at the wire server."""

import asyncio
from typing import Literal

import aiohttp
from switchboard.plugin_sdk import CallAnswered, CalleeRinging, CallEnded
from switchboard_offline.loopback.callbacks import ConnectReply, ForwardReply, RejectReply, Reply
from switchboard_offline.loopback.leg import CONNECT_SECONDS, LoopbackLeg, MediaFailed, ring_person
from switchboard_offline.loopback.persons import Person, Subscriber

from tests.carriers.telnyx.wire import TelnyxPost, TelnyxStream


class TelnyxLeg(LoopbackLeg):
    """A person's line, connected by a Telnyx media stream."""

    def __init__(self, post: TelnyxPost) -> None:
        super().__init__(post.record.id, post, "")
        self.post = post
        self.altered: dict[str, object] = {}
        self.speech: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def wait_for_speech(self, subscriber: Subscriber, ring_seconds: float) -> CallEnded:
        """Call a person, who waits for speech once connected."""
        self.notify(CalleeRinging(self.call_id))
        if subscriber.outcome is None:
            self.notify(CallAnswered(self.call_id, "unknown"))
        speech = await self.speech if subscriber.outcome is None else b""
        return await self.consult(ring_person(subscriber, ring_seconds), speech)

    def connect_media(self, url: str) -> None:
        self._decide(ConnectReply(url))

    def refuse(self, reason: Literal["rejected", "busy"]) -> None:
        self._decide(RejectReply(reason))

    def end(self) -> None:
        """End the call, in any state."""
        self._decide(RejectReply("rejected"))
        self.hang_up()

    def bridge(self, to_number: str, caller_id: str, person: Person) -> None:
        """Connect the call to a person who has answered."""
        if self.post.record.decision.done() or self.post.record.state != "parked":
            self.connect_to(person)
        else:
            self._decide(ForwardReply(to_number, caller_id))

    def _decide(self, reply: Reply) -> None:
        if not self.post.record.decision.done():
            self.post.record.decision.set_result(reply)

    async def open_media(self, url: str) -> TelnyxStream:
        assert "?" not in url
        record = self.post.record
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                socket = await self.post.http.ws_connect(url, timeout=aiohttp.ClientWSTimeout(ws_close=1.0))
                start = {
                    "from": record.from_number,
                    "to": record.to_number,
                    "client_state": record.client_state,
                    **self.altered,
                }
                stream = TelnyxStream(socket, self.call_id, start)
                await stream.start()
        except (aiohttp.ClientError, TimeoutError) as error:
            await self.post.send_event("streaming.failed", failure_reason="connection_failed", stream_type="websocket")
            raise MediaFailed("connection_failed") from error
        return stream
