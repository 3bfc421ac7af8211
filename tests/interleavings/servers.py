"""Servers of the simulation: callbacks, announcements, the heartbeat, and calls without their conversation."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from switchboard.engine.conversation.call import EndedReason, MediaSocket
from switchboard.engine.providers.health import ServiceRecord
from switchboard.foundation.injection import Parts
from switchboard.plugin_sdk import ConnectMedia, IncomingCall
from switchboard.plugin_sdk.telephony_events import CallEvent
from switchboard.resources.calls.callbacks import CarrierEventHandler
from switchboard.resources.calls.dialing import MediaGrant, read_media_token
from switchboard.resources.calls.inbound import InboundCallRouter
from switchboard.resources.calls.live.heartbeat import run_heartbeat
from switchboard.resources.calls.media import call_runner
from switchboard.resources.calls.media.call_runner import CallRunner
from switchboard.resources.calls.media_servers import PUBLIC, MediaServers

from tests.interleavings.carrier import CARRIER, Line
from tests.interleavings.processes import Process, build
from tests.interleavings.world import World

SERVER_STOPPED = "The server that ran the call stopped."


class OpenMediaServers(MediaServers):
    """Media servers that have a place for every call."""

    async def reserve_place_here(self, call_id: UUID) -> str | None:
        return PUBLIC

    async def reserve_place(self, call_id: UUID) -> str | None:
        return PUBLIC

    async def release_place(self, call_id: UUID) -> None:
        """Keep no places."""

    async def has_capacity(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class LineSocket:
    """The media socket of a line."""

    line: Line
    opened_at: float = 0.0

    async def receive(self) -> None:
        """Nobody speaks."""

    async def send(self, message: object) -> None:
        """Nobody listens."""

    async def close(self) -> None:
        """Hang up."""
        self.line.hung_up.set()


@dataclass(eq=False)
class Conversation:
    """A call that a server has claimed. `is_saved` once the server has its result in the database, as it believes."""

    server: "Server"
    is_saved: bool = False


class BriefCallRunner(CallRunner):
    """Runs calls that consist of a pause: claimed, ended, and saved as any call."""

    server: "Server"
    seconds: float

    async def _run_claimed_call(
        self, claimed: call_runner._ClaimedCall, grant: MediaGrant, socket: MediaSocket
    ) -> None:
        """Wait until somebody hangs up. Nobody else may have ended the call by then."""
        assert isinstance(socket, LineSocket)
        world = self.server.world
        conversation = self.server.conversations[grant.call_id] = Conversation(self.server)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.seconds):
                await socket.line.hung_up.wait()
        query = f"select error_message from call where id = '{grant.call_id}'"  # noqa: S608 - ours
        if [row["error_message"] for row in await world.fetch(query)] == [SERVER_STOPPED]:
            world.complain(f"ended: call {grant.call_id} was ended while its server lived")
        await call_runner._finish_without_result(
            self.database, claimed.call, EndedReason.CALLER_HUNG_UP, None, ServiceRecord()
        )
        conversation.is_saved = True
        await socket.close()


@dataclass(eq=False, kw_only=True)
class Server(Process):
    """A server, reached by the carrier."""

    world: World
    conversations: dict[UUID, Conversation]
    """The calls that servers have had, by id."""
    parts: Parts = field(default_factory=dict)

    def serve(self) -> None:
        """Begin the heartbeat."""
        self.start(build(run_heartbeat, self.parts))

    async def reach(self, work: Callable[[], Awaitable[object]]) -> bool:
        """Run work in the process; return whether it succeeded. Its errors are answers to the carrier."""
        done = asyncio.get_running_loop().create_future()

        async def run() -> None:
            succeeded = False
            try:
                await work()
                succeeded = True
            except Exception as error:  # noqa: BLE001 - judged by the world
                self._judge(error)
            finally:
                done.set_result(succeeded and not self.gate.is_dead)

        if self.gate.is_dead:
            return False
        self.start(run())
        return bool(await done)

    def _judge(self, error: Exception) -> None:
        if not self.gate.is_dead:
            self.world.judge_error("a request", error)

    async def apply(self, event: CallEvent, call_id: UUID | None) -> None:
        """Apply a callback."""
        handler = build(CarrierEventHandler, self.parts)
        await handler.apply_call_event(self.world.organization_id, CARRIER, event, call_id=call_id)

    async def announce(self, incoming: IncomingCall) -> str | None:
        """Answer the announcement of a call; return the address of its media socket, None for a refused call."""
        router = build(InboundCallRouter, self.parts)
        instruction = await router.answer_inbound_call(self.world.organization_id, CARRIER, incoming)
        return instruction.media_url if isinstance(instruction, ConnectMedia) else None

    async def converse(self, media_url: str, line: Line) -> None:
        """Run the call of a media socket."""
        runner = build(BriefCallRunner, self.parts)
        seconds = self.world.create_choices(f"talk {line.carrier_call_id}").uniform(1, 25)
        object.__setattr__(runner, "server", self)
        object.__setattr__(runner, "seconds", seconds)
        grant = read_media_token(self.world.installation.keyring, media_url.rpartition("/")[2])
        assert grant is not None
        await runner.run_call(grant, LineSocket(line))
