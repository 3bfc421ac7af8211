"""A simulated caller's side of an inbound call: announce it, follow the platform's reply, and hold the call to
its end.
"""

from abc import ABC, abstractmethod
from typing import Final

from switchboard.plugin_sdk import find_client_identity

from switchboard_offline.loopback.callbacks import (
    CallEndedNotice,
    ConnectReply,
    ForwardReply,
    IncomingCallNotice,
    NoticeSender,
    NoticeUndelivered,
    read_reply,
)
from switchboard_offline.loopback.client_line import ring_client
from switchboard_offline.loopback.clients import RingRequest
from switchboard_offline.loopback.leg import LoopbackLeg, Party
from switchboard_offline.loopback.line import FarEnd, OtherPerson
from switchboard_offline.loopback.persons import Directory, Person, Subscriber

FORWARD_RING_SECONDS: Final = 30.0


class Caller(ABC):
    """One inbound call. `refused` is the reason why it was not answered."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.refused: str | None = None
        self.answered = False
        self.hung_up_by: Party | None = None

    @abstractmethod
    def person(self, leg: LoopbackLeg) -> Person:
        """Return the behavior of the caller once connected."""

    async def ring(
        self, leg: LoopbackLeg, post: NoticeSender, events_url: str, call: IncomingCallNotice
    ) -> CallEndedNotice:
        """Announce the call, follow the platform's reply, and hold the call to its end."""
        try:
            answer = read_reply(await post.deliver(events_url, call))
        except (NoticeUndelivered, ValueError) as error:
            self.refused = (
                str(error)
                if isinstance(error, NoticeUndelivered)
                else f"the platform's response was not understood: {error}"
            )
            return CallEndedNotice(leg.call_id, "failed", error_message=self.refused)
        if isinstance(answer, ConnectReply):
            return await self._talk(leg, await leg.open_media(answer.media_url))
        if isinstance(answer, ForwardReply):
            subscriber = await self._find_subscriber(leg, post, answer)
            if subscriber is None:
                return CallEndedNotice(leg.call_id, "canceled")
            if subscriber.outcome is None:
                return await self._talk(leg, OtherPerson(subscriber.person))
            self.refused = f"the number that the call was forwarded to does not answer: {subscriber.outcome}"
            return CallEndedNotice(leg.call_id, subscriber.outcome, 0, subscriber.error_message, subscriber.error_code)
        self.refused = answer.reason
        return CallEndedNotice(
            leg.call_id, "busy" if answer.reason == "busy" else "failed", error_message="the call was rejected"
        )

    async def _find_subscriber(self, leg: LoopbackLeg, post: NoticeSender, forward: ForwardReply) -> Subscriber | None:
        identity = find_client_identity(forward.to_number)
        if identity is None or not forward.clients_port:
            return self._directory.subscriber(forward.to_number)
        request = RingRequest(leg.call_id, identity, forward.caller_id, FORWARD_RING_SECONDS)
        return await leg.ring_unless_canceled(ring_client(post, forward.clients_port, request))

    async def _talk(self, leg: LoopbackLeg, far: FarEnd) -> CallEndedNotice:
        self.answered = True
        self.hung_up_by = await leg.converse(self.person(leg), far)
        return CallEndedNotice(leg.call_id, "completed", leg.seconds)
