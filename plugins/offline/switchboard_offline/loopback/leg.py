"""One call at the carrier: a person's phone, the far end, and the notices sent to the platform."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Final, Literal, TypeAlias
from uuid import uuid4

import aiohttp
from switchboard.plugin_sdk import (
    ACCEPT_KEY,
    CallAnswered,
    CalleeRinging,
    CallEnded,
    CarrierEvent,
    MachineDetected,
    OutboundCall,
    ProviderError,
    TransferTargetGone,
    TransferTargetReady,
)
from switchboard.plugin_sdk.telephony_events import AnsweredBy

from switchboard_offline.loopback.callbacks import NoticeSender, NoticeUndelivered
from switchboard_offline.loopback.line import (
    Announcement,
    FarEnd,
    MediaStream,
    OtherPerson,
    create_cable,
    run_audio_clock,
)
from switchboard_offline.loopback.persons import Person, Subscriber
from switchboard_offline.loopback.phone import Phone

RING_SECONDS: Final = 0.3
MAX_CALL_SECONDS: Final = 14_400
CONNECT_SECONDS: Final = 10.0

Party: TypeAlias = Literal["person", "agent", "limit"]


class MediaFailed(Exception):
    """The platform's media socket could not be opened, or sent something that is not understood."""


class LoopbackLeg:
    """A call. `run` it as a task; `hang_up`, `connect_to`, and `press` are the platform's commands."""

    def __init__(self, call_id: str, post: NoticeSender, events_url: str, reference: str | None = None) -> None:
        self.call_id = call_id
        self.reference = reference
        self.phone = Phone(machine_beeped=lambda: self.notify(MachineDetected(call_id, beep=True)))
        self.detect_machine = False
        self.fault: str | None = None
        self._post = post
        self._events_url = events_url
        self._commands: asyncio.Queue[FarEnd | None] = asyncio.Queue()  # None: hang up
        self._undelivered: asyncio.Queue[CarrierEvent | None] = asyncio.Queue()

    # commands

    def hang_up(self) -> None:
        self._commands.put_nowait(None)

    def connect_to(self, person: Person) -> None:
        self.patch(OtherPerson(person))

    def patch(self, far: FarEnd) -> None:
        self._commands.put_nowait(far)

    async def press(self, digits: str) -> None:
        """Take the time of the keys; people do not react to them."""
        await asyncio.sleep(0.5 * digits.count("w"))

    # the call

    def notify(self, notice: CarrierEvent) -> None:
        """Queue a notice for the platform, after all earlier ones."""
        if self.detect_machine or not isinstance(notice, MachineDetected):
            self._undelivered.put_nowait(notice)

    async def run(self, call: Callable[["LoopbackLeg"], Awaitable[CallEnded]]) -> None:
        """Hold the call and notify the platform of its end; returns once that was delivered."""
        delivery = asyncio.create_task(self._deliver_notices())
        ended = CallEnded(self.call_id, "failed", error_message="the carrier stopped")
        try:
            ended = await call(self)
        except (MediaFailed, ProviderError) as error:
            self.fault = str(error)
            ended = CallEnded(
                self.call_id, "failed", self.seconds, self.fault, "media" if isinstance(error, MediaFailed) else None
            )
        finally:
            self.notify(ended)
            self._undelivered.put_nowait(None)
            await delivery

    @property
    def seconds(self) -> int:
        """Duration of the connected call, in whole seconds."""
        return round(self.phone.now * 0.02)

    async def place(self, order: OutboundCall, subscriber: Subscriber) -> CallEnded:
        """Call a person for the platform, and connect the two."""
        self.notify(CalleeRinging(self.call_id))
        if await self.ring_unless_canceled(ring_person(subscriber, order.ring_seconds)) is None:
            return CallEnded(self.call_id, "canceled")
        if subscriber.outcome is not None:
            return CallEnded(self.call_id, subscriber.outcome, 0, subscriber.error_message, subscriber.error_code)
        # A busy platform would hear of the answer first, by its media socket, and the call would never have rung.
        await self._undelivered.join()
        self.detect_machine = order.detect_machine
        found: AnsweredBy = "machine" if subscriber.machine else "human"
        self.notify(CallAnswered(self.call_id, found if order.detect_machine else "unknown"))
        await self.converse(subscriber.person, await self.open_media(order.media_url), order.max_duration_seconds)
        return CallEnded(self.call_id, "completed", self.seconds)

    async def consult(self, ringing: Coroutine[None, None, Subscriber], audio: bytes) -> CallEnded:
        """Ring a person or a client, and speak an introduction. A person then presses the key that accepts, and waits
        to be connected; a machine does not, and is hung up.
        """
        subscriber = await self.ring_unless_canceled(ringing)
        if subscriber is None:
            return CallEnded(self.call_id, "canceled")
        if subscriber.outcome is not None:
            return CallEnded(self.call_id, subscriber.outcome, 0, subscriber.error_message, subscriber.error_code)
        presses = not subscriber.machine and not subscriber.is_client
        question = Announcement(
            audio,
            on_spoken=lambda: self.phone.press(ACCEPT_KEY) if presses else None,
            on_accepted=lambda: self.notify(TransferTargetReady(self.call_id)),
        )
        await self.converse(subscriber.person, question)
        return CallEnded(self.call_id, "completed", self.seconds)

    async def ring_unless_canceled(self, ringing: Coroutine[None, None, Subscriber]) -> Subscriber | None:
        """Return the person who answers, or the reason why nobody does; None if the platform hangs up first."""
        answer, canceled = asyncio.create_task(ringing), asyncio.create_task(self._commands.get())
        try:
            await asyncio.wait({answer, canceled}, return_when=asyncio.FIRST_COMPLETED)
            return None if canceled.done() else answer.result()
        finally:
            await _stop(answer)
            await _stop(canceled)

    async def open_media(self, url: str) -> FarEnd:
        """Open the platform's media socket. Raises `MediaFailed`."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                socket = await self._post.http.ws_connect(
                    url, timeout=aiohttp.ClientWSTimeout(ws_close=1.0), max_msg_size=1 << 22
                )
                stream = MediaStream(socket, self.call_id, f"ls-{uuid4().hex}")
                await stream.start()
        except aiohttp.WSServerHandshakeError as error:
            # The error's own text has the address, whose token opens the call.
            raise MediaFailed(f"the media socket cannot be opened: status {error.status}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise MediaFailed(f"the media socket cannot be opened: {str(error) or type(error).__name__}") from error
        return stream

    async def converse(self, person: Person, far: FarEnd, limit: float = MAX_CALL_SECONDS) -> Party:
        """Let the two ends talk until one of them hangs up, and return that end. Raises `MediaFailed` and
        `ProviderError`.
        """
        near: asyncio.Future[None] = asyncio.ensure_future(person(self.phone))
        loop = asyncio.get_running_loop()
        until = loop.time() + limit
        try:
            while True:
                change = await self._wait_for_change(near, far, until - loop.time())
                await far.close()
                if isinstance(change, str):
                    return change
                far = change
        finally:
            await _stop(near)
            await far.close()

    async def _wait_for_change(self, near: asyncio.Future[None], far: FarEnd, seconds: float) -> Party | FarEnd:
        clock = asyncio.create_task(run_audio_clock(self.phone, far))
        other = asyncio.create_task(far.run())
        command = asyncio.create_task(self._commands.get())
        try:
            awaited: set[asyncio.Future[None] | asyncio.Task[FarEnd | None]] = {near, clock, other, command}
            done, _ = await asyncio.wait(awaited, timeout=max(0, seconds), return_when=asyncio.FIRST_COMPLETED)
            if command in done:
                return command.result() or "agent"
            for task in done - {command}:
                task.result()
            if isinstance(far, MediaStream) and far.fault:
                raise MediaFailed(far.fault)
            return "limit" if not done else "person" if near in done else "agent"
        finally:
            for task in (clock, other, command):
                await _stop(task)

    async def _deliver_notices(self) -> None:
        while (notice := await self._undelivered.get()) is not None:
            # A platform that is down for longer than the retries last misses the notice, as with any carrier.
            with suppress(NoticeUndelivered):
                await self._post.deliver(self._events_url, notice)
            self._undelivered.task_done()


async def ring_person(subscriber: Subscriber, seconds: float) -> Subscriber:
    """Ring a telephone, which is answered, or refuses the call, soon; one that nobody answers rings for all of this
    time.
    """
    await asyncio.sleep(seconds if subscriber.outcome == "no-answer" else min(RING_SECONDS, seconds))
    return subscriber


async def _stop(task: asyncio.Future[None] | asyncio.Task[FarEnd | None] | asyncio.Task[Subscriber]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()


def join_legs(call: LoopbackLeg, target: LoopbackLeg) -> None:
    """Connect two people who have both answered."""
    one, other = create_cable()
    call.patch(one)
    target.patch(other)


class TargetLeg(LoopbackLeg):
    """A call to the target of a warm transfer. Its end is reported as `TransferTargetGone`."""

    def notify(self, notice: CarrierEvent) -> None:
        if isinstance(notice, CallEnded):
            notice = TransferTargetGone(notice.carrier_call_id, notice.outcome)
        super().notify(notice)
