"""The calls of a gateway: those that trunks bring, and those that the platform orders."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from uuid import UUID, uuid4

import aiohttp
import structlog
from aiosipua.message import SipRequest
from switchboard.plugin_sdk import (
    CallAnswered,
    CalleeRinging,
    ConnectMedia,
    ForwardCall,
    IncomingCall,
    ProviderError,
    RejectCall,
    TextMessageReceived,
)

from switchboard_telephony_sip.callbacks import read_instruction
from switchboard_telephony_sip.commands import IntroduceCommand, PlaceCommand
from switchboard_telephony_sip.gateway.call_traces import CallTraces, TracedInviter
from switchboard_telephony_sip.gateway.calls import GatewayCall
from switchboard_telephony_sip.gateway.dialing import CallInviter, DialFailed, DialOrder, dial
from switchboard_telephony_sip.gateway.directory import GatewayAccount, TrunkDirectory, TrunkLine
from switchboard_telephony_sip.gateway.gateway_metrics import GatewayMetrics
from switchboard_telephony_sip.gateway.legs import DECLINED, Leg, adopt_answer, give_up, wait_for_any
from switchboard_telephony_sip.gateway.media_link import MediaLink, MediaSocketFailed
from switchboard_telephony_sip.gateway.notices import (
    ANNOUNCE_RETRY_SECONDS,
    NoticeQueue,
    NoticeRefused,
    PlatformLink,
)
from switchboard_telephony_sip.gateway.outcomes import CANCELED, CallEnd, describe_refusal
from switchboard_telephony_sip.gateway.phone_numbers import read_attestation, read_parties
from switchboard_telephony_sip.gateway.targets import TransferTarget
from switchboard_telephony_sip.headers import read_metadata
from switchboard_telephony_sip.media.place import MediaPlace, NoFreePorts
from switchboard_telephony_sip.media.session import MediaSession
from switchboard_telephony_sip.media.session_description import NoCommonMedia
from switchboard_telephony_sip.signaling.admission import TrunkQuota
from switchboard_telephony_sip.signaling.dialogs import Dialog
from switchboard_telephony_sip.signaling.incoming import CallCanceled, IncomingInvite
from switchboard_telephony_sip.signaling.peers import Peer
from switchboard_telephony_sip.signaling.reception import AuthenticationDecision, TrunkUndecided
from switchboard_telephony_sip.signaling.transactions import TransactionTimeout

logger = structlog.get_logger()
FORWARD_SECONDS: Final = 60.0
MAX_SECONDS: Final = 14_400.0
NOT_FOUND, BUSY, NOT_ACCEPTABLE, UNAVAILABLE = 404, 486, 488, 503


@dataclass(slots=True)
class Switching:
    """Calls of a gateway at `place`, over its user agent.

    `find_owner` finds the organization of a called number.
    """

    place: str
    directory: TrunkDirectory
    http: aiohttp.ClientSession
    media_place: MediaPlace
    metrics: GatewayMetrics
    find_owner: Callable[[str], Awaitable[UUID | None]]
    agent: CallInviter = field(init=False)
    calls: dict[str, GatewayCall] = field(default_factory=dict)
    references: dict[tuple[str, str], str] = field(default_factory=dict)
    targets: dict[str, TransferTarget] = field(default_factory=dict)
    """Targets of warm transfers, until they are connected or gone."""
    traces: CallTraces = field(init=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.traces = CallTraces(self.calls)

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run a task that `wait_until_idle` waits for."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait_until_idle(self) -> None:
        """Wait until no call is left."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self, seconds: float) -> None:
        """End every call, and drop the notices that the platform has not taken after this time."""
        for call in self.calls.values():
            call.hang_up()
        for target in self.targets.values():
            target.hang_up()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _create_call(self, account: GatewayAccount, events_url: str) -> GatewayCall:
        link = PlatformLink(self.http, account.secret)
        call = GatewayCall(self.place, account.key, NoticeQueue(link, events_url))
        self.calls[call.call_id] = call
        return call

    async def dial(self, account: GatewayAccount, order: DialOrder, call: GatewayCall) -> Leg:
        """Call a number over the account's trunks, as a part of a call. Raises `DialFailed`."""
        return await dial(TracedInviter(self.traces, call, self.agent), self.media_place, account, order)

    # outbound calls

    def place_call(self, account: GatewayAccount, command: PlaceCommand) -> str:
        """Begin an outbound call and return its id; that of the same call for a repeated command."""
        known = self.references.get((account.key, command.reference))
        if known is not None:
            return known
        call = self._create_call(account, command.events_url)
        self.references[account.key, command.reference] = call.call_id
        self.spawn(self._run_outbound(account, call, command))
        return call.call_id

    async def _run_outbound(self, account: GatewayAccount, call: GatewayCall, command: PlaceCommand) -> None:
        end = CANCELED
        try:
            end = await self._connect_outbound(account, call, command)
        except MediaSocketFailed as error:
            end = CallEnd("failed", str(error), "media")
        finally:
            self.metrics.count("outbound", end)
            await call.finish(end)
            del self.calls[call.call_id], self.references[account.key, command.reference]

    async def _connect_outbound(self, account: GatewayAccount, call: GatewayCall, command: PlaceCommand) -> CallEnd:
        order = DialOrder(
            command.to_number,
            command.from_number,
            command.ring_seconds,
            command.headers,
            lambda: call.notices.post(CalleeRinging(call.call_id)),
        )
        dialing = asyncio.create_task(self.dial(account, order, call))
        await wait_for_any(dialing, call.hung_up)
        if not dialing.done():
            await give_up(dialing)
            return CANCELED
        try:
            leg = dialing.result()
        except DialFailed as error:
            return error.end
        self._attach(call, leg)
        call.notices.post(CallAnswered(call.call_id))
        # A busy platform would otherwise hear of the answer first by its media socket.
        await call.notices.flush()
        link = await MediaLink.open(self.http, command.media_url, leg.media, call.call_id)
        return await call.converse(link, command.max_seconds)

    def introduce(self, account: GatewayAccount, call: GatewayCall, command: IntroduceCommand) -> str:
        """Begin a call to the target of a call's warm transfer, and return its id."""
        notices = NoticeQueue(PlatformLink(self.http, account.secret), command.events_url)
        target = TransferTarget(self.place, account.key, notices)
        self.targets[target.call_id] = target
        order = DialOrder(command.to_number, command.caller_id, command.ring_seconds)
        running = self.spawn(target.run(asyncio.create_task(self.dial(account, order, call)), command.speech))
        running.add_done_callback(lambda _: self.targets.pop(target.call_id))
        return target.call_id

    def _attach(self, call: GatewayCall, leg: Leg) -> None:
        leg.events.follow_referral = partial(call.follow_referral, TracedInviter(self.traces, call, self.agent))
        call.attach(leg)

    # inbound calls (`UserAgentEvents`)

    def is_trunk_address(self, host: str) -> bool:
        return self.directory.has_address(host)

    def authenticate(self, request: SipRequest, peer: Peer) -> AuthenticationDecision:
        return self.directory.authenticate(request, peer)

    async def choose_trunk(
        self, request: SipRequest, trunks: Sequence[TrunkQuota], replaces: Dialog | None
    ) -> TrunkQuota | None:
        call = self._find_call(replaces)
        if call is not None and call.leg is not None and call.leg.line.quota in trunks:
            return call.leg.line.quota
        # Trunks of several organizations share the address: the call is only for the one that has the called number,
        # and no other organization learns of it. Each trunk writes numbers in its own way.
        owners: dict[str, UUID | None] = {}
        for line in filter(None, map(self.directory.find_line, (trunk.name for trunk in trunks))):
            _, callee = read_parties(line, request)
            if callee not in owners:
                try:
                    owners[callee] = await self.find_owner(callee)
                except ProviderError as error:
                    logger.warning("the owner of a called number cannot be found", reason=error.message)
                    raise TrunkUndecided from error
            if owners[callee] == line.account.organization_id:
                return line.quota
        logger.warning(
            "SIP request refused: its address belongs to several trunks, and the called number to none of them",
            method=request.method,
            trunks=[trunk.name.rpartition("/")[2] for trunk in trunks],
        )
        return None

    def _find_call(self, dialog: Dialog | None) -> GatewayCall | None:
        if dialog is None:
            return None
        return next((call for call in self.calls.values() if call.leg and call.leg.dialog is dialog), None)

    async def on_invite(self, invite: IncomingInvite) -> None:
        line = self.directory.find_line(invite.trunk.name)
        if line is None:
            invite.reject(UNAVAILABLE)
            return
        if invite.replaces is not None:
            replaced = self._find_call(invite.replaces)
            if replaced is None or replaced.account_key != line.account.key:
                invite.reject(481)
                return
            self.traces.link(replaced, invite.request.call_id or "")
            await replaced.take_over(invite)
            return
        call = self._create_call(line.account, line.account.events_url)
        self.traces.link(call, invite.request.call_id or "")
        running = self.spawn(self._run_inbound(line, call, invite))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            if not invite.is_settled or call.leg is None:
                running.cancel()
            raise

    async def _run_inbound(self, line: TrunkLine, call: GatewayCall, invite: IncomingInvite) -> None:
        end = CANCELED
        try:
            end = await self._answer_inbound(line, call, invite)
        except (CallCanceled, TransactionTimeout):
            pass
        except NoticeRefused as error:
            logger.warning("inbound SIP call answered with 503", reason=str(error))
            invite.reject(UNAVAILABLE)
        except MediaSocketFailed as error:
            end = CallEnd("failed", str(error), "media")
            invite.reject(UNAVAILABLE)
        except (NoCommonMedia, NoFreePorts) as error:
            status = NOT_ACCEPTABLE if isinstance(error, NoCommonMedia) else UNAVAILABLE
            end = CallEnd("failed", str(error), str(status), status)
            invite.reject(status)
        finally:
            self.metrics.count("inbound", end)
            await call.finish(end)
            del self.calls[call.call_id]

    async def _answer_inbound(self, line: TrunkLine, call: GatewayCall, invite: IncomingInvite) -> CallEnd:
        link = PlatformLink(self.http, line.account.secret)
        metadata = read_metadata({name: values[0] for name, values in invite.request.headers.items()})
        metadata |= read_attestation(invite.request)
        announced = IncomingCall(call.call_id, *read_parties(line, invite.request), metadata=metadata)
        body = await link.deliver(line.account.events_url, announced, ANNOUNCE_RETRY_SECONDS)
        match read_instruction(body):
            case ConnectMedia(media_url):
                return await self._connect_inbound(line, call, invite, media_url)
            case ForwardCall(to_number, caller_id):
                return await self._forward_inbound(line, call, invite, DialOrder(to_number, caller_id, FORWARD_SECONDS))
            case RejectCall(reason, unknown_number):
                status = NOT_FOUND if unknown_number else BUSY if reason == "busy" else DECLINED
                invite.reject(status)
                return describe_refusal(status)

    async def _connect_inbound(
        self, line: TrunkLine, call: GatewayCall, invite: IncomingInvite, media_url: str
    ) -> CallEnd:
        invite.ring()
        media = await MediaSession.open(self.media_place, line.media_preferences)
        try:
            link = await MediaLink.open(self.http, media_url, media, call.call_id)
        except BaseException:
            await media.close()
            raise
        try:
            await self._answer(line, call, invite, media)
        except BaseException:
            await link.close(stopped=False)  # The call was not answered, and its audio has not started.
            raise
        return await call.converse(link, MAX_SECONDS)

    async def _forward_inbound(
        self, line: TrunkLine, call: GatewayCall, invite: IncomingInvite, order: DialOrder
    ) -> CallEnd:
        """Call another number, and answer the caller once it answers."""
        invite.ring()
        try:
            target = await self.dial(line.account, order, call)
        except DialFailed as error:
            invite.reject(error.end.status)
            return error.end
        answered: asyncio.Future[Leg] = asyncio.get_running_loop().create_future()
        answered.set_result(target)
        try:
            media = await MediaSession.open(self.media_place, line.media_preferences)
            await self._answer(line, call, invite, media)
        except BaseException:
            await target.release()
            raise
        return await call.bridge(answered, MAX_SECONDS)

    async def _answer(self, line: TrunkLine, call: GatewayCall, invite: IncomingInvite, media: MediaSession) -> None:
        try:
            if invite.sdp is None:
                dialog = await invite.answer(media.create_offer())
                await adopt_answer(dialog, media)
            else:
                dialog = await invite.answer(media.answer(invite.sdp))
        except BaseException:
            await media.close()
            raise
        self._attach(call, Leg.attach(line, dialog, media))

    async def on_message(self, request: SipRequest, peer: Peer, trunk: TrunkQuota) -> int:
        line = self.directory.find_line(trunk.name)
        if line is None:
            return UNAVAILABLE
        if not line.trunk.text_messages or not (request.content_type or "").startswith("text/plain"):
            return DECLINED if not line.trunk.text_messages else 415
        caller, callee = read_parties(line, request)
        notice = TextMessageReceived(uuid4().hex, caller, callee, request.text)
        try:
            await PlatformLink(self.http, line.account.secret).deliver(line.account.events_url, notice, (0.5,))
        except NoticeRefused:
            return UNAVAILABLE
        return 200
