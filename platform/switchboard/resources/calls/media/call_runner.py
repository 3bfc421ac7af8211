"""Running a call from the first message of its media socket to its result in the database."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from uuid import UUID

import structlog

from switchboard.engine.conversation.call import (
    CallResult,
    EndedReason,
    LiveCall,
    MediaSocket,
    SpeechRenderer,
    Tool,
)
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.tools import OptOut, SendTextMessage
from switchboard.engine.conversation.transfer import get_accept_prompt
from switchboard.engine.conversation.variables import Variables
from switchboard.engine.disclosure.disclosure import Disclosure
from switchboard.engine.providers.conversation import CAPABILITIES
from switchboard.engine.providers.health import ProviderFailure, ServiceRecord
from switchboard.engine.providers.instances import Providers, choose_configuration, list_configurations
from switchboard.engine.providers.models import StoredConfiguration
from switchboard.engine.providers.request_spans import span_request
from switchboard.foundation.database import Database, now, retry_while_away
from switchboard.foundation.jobs import run_beside
from switchboard.foundation.leases import LeaseKeeper
from switchboard.foundation.observability import metrics
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import ApiError, NotFound
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.plugin_sdk import (
    CallbackUrls,
    Message,
    ProviderError,
    ProviderSettings,
    TelephonyProvider,
    ToolError,
    WarmTransfer,
)
from switchboard.plugin_sdk.registry import Capability, Registry
from switchboard.resources.agents.colleagues import ClaimedAgent, claim_agents, read_contact
from switchboard.resources.agents.disclosure import open_disclosure
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.tools import AgentTools
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.call_queue import DatabasePersonQueue
from switchboard.resources.calls.chats import list_messages_before_call
from switchboard.resources.calls.dialing import MediaGrant, build_call_callback_urls, format_media_url, hang_up
from switchboard.resources.calls.media.call_agents import CallAgents
from switchboard.resources.calls.media.call_log import DatabaseCallLog
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.queries import lock_call_with_agent, lock_queue_entry
from switchboard.resources.calls.recordings.queries import SPOOL_TIME
from switchboard.resources.calls.recordings.spool import build_spool_path
from switchboard.resources.calls.recordings.uploads import RecordingUploader
from switchboard.resources.calls.states import FinalStatus, build_variables, finish_call, is_over, start_call
from switchboard.resources.destinations.clients import build_carrier_destination, find_transfer_refusal
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.phone_numbers.queries import find_phone_number
from switchboard.resources.sms import service as sms

# The carrier's side of a live call: actions that the conversation asks for, checked and translated.


@dataclass(frozen=True, slots=True)
class ProviderCarrierLeg:
    """Carrier leg of a call (`CarrierLeg` of the engine)."""

    settings: Settings
    database: Database
    registry: Registry
    call: Call
    carrier: TelephonyProvider[ProviderSettings]

    async def hang_up(self) -> None:
        carrier_call_id = await self._carrier_call_id()
        with span_request("hang_up", self.carrier.name):
            await self.carrier.hang_up(carrier_call_id)

    async def transfer(self, to_number: str) -> None:
        if not self.carrier.capabilities.transfer:
            raise ProviderError(f"{self.carrier.title} cannot transfer calls", retryable=False)
        await self._check_target(to_number)
        carrier_call_id = await self._carrier_call_id()
        with span_request("transfer", self.carrier.name):
            await self.carrier.transfer(
                carrier_call_id,
                to_number=build_carrier_destination(self.call.organization_id, to_number),
                caller_id=calls.choose_caller_id(self.call, to_number),
                callbacks=self._callbacks,
            )

    async def introduce(self, to_number: str, text: str, language: str, render: SpeechRenderer) -> str:
        capabilities, prompt = self.carrier.capabilities, get_accept_prompt(language)
        if not capabilities.warm_transfer:
            raise ProviderError(
                f"{self.carrier.title} can transfer calls without an introduction only", retryable=False
            )
        await self._check_target(to_number)
        introduction = WarmTransfer(
            build_carrier_destination(self.call.organization_id, to_number),
            calls.get_own_number(self.call),
            text,
            prompt,
            language,
            speech=b"" if capabilities.speaks else await render(f"{text} {prompt}"),
        )
        carrier_call_id = await self._carrier_call_id()
        with span_request("start_warm_transfer", self.carrier.name):
            return await self.carrier.start_warm_transfer(carrier_call_id, introduction, self._callbacks)

    async def connect(self, target_call_id: str) -> None:
        carrier_call_id = await self._carrier_call_id()
        with span_request("complete_warm_transfer", self.carrier.name):
            await self.carrier.complete_warm_transfer(carrier_call_id, target_call_id)

    async def hang_up_target(self, target_call_id: str) -> None:
        with span_request("hang_up", self.carrier.name):
            await self.carrier.hang_up(target_call_id)

    async def send_digits(self, digits: str) -> None:
        carrier_call_id = await self._carrier_call_id()
        with span_request("send_digits", self.carrier.name):
            await self.carrier.send_digits(carrier_call_id, digits)

    async def _check_target(self, destination: str) -> None:
        """Check the target of a transfer like any number that is called: the model, or the caller, chooses it."""
        async with self.database.read(self.call.organization_id) as session:
            refusal = await find_transfer_refusal(session, self.registry, self.call.carrier, destination)
        if refusal is not None:
            raise ProviderError(refusal.detail, retryable=False)

    @property
    def _callbacks(self) -> CallbackUrls:
        return build_call_callback_urls(self.settings, self.call)

    async def _carrier_call_id(self) -> str:
        """Return the carrier's id, which a callback may bring after the carrier has opened the media socket."""
        if self.call.carrier_call_id is None:
            async with self.database.write(self.call.organization_id) as session:
                self.call.carrier_call_id = (await get_row(session, Call, self.call.id)).carrier_call_id
        if self.call.carrier_call_id is None:
            raise ProviderError("the carrier has not reported the call's id yet")
        return self.call.carrier_call_id


logger = structlog.get_logger()
CLAIM_SECONDS = 10.0
"""Time for which a caller hears nothing during an outage of the database."""
RESULT_SECONDS = 600.0
FAILURES = {EndedReason.PROVIDER_FAILED, EndedReason.ERROR, EndedReason.SHUTDOWN}
"""Reasons that make a call `failed`; with any other reason it is `completed`."""


@dataclass(frozen=True, slots=True)
class _ClaimedCall:
    """A call that this process runs, with what its conversation needs from the database."""

    call: Call
    agent: Agent
    configurations: Sequence[StoredConfiguration]
    agents: Mapping[UUID, ClaimedAgent]
    contact: Variables
    disclosure: Disclosure | None
    begins_with_person: bool
    history: Sequence[Message]


@dataclass(frozen=True, slots=True)
class CallRunner:
    lease: LeaseKeeper
    settings: Settings
    database: Database
    providers: Providers
    engine: CallEngine
    registry: Registry
    agent_tools: AgentTools
    uploader: RecordingUploader

    async def run_call(self, grant: MediaGrant, socket: MediaSocket) -> bool:
        """Run one call to its end, and return whether this socket had the call.

        The socket is closed at once if the call is unknown, over, run by another socket, or assigned to another
        carrier. The caller holds the engine.
        """
        organization_id, call_id, carrier = grant.organization_id, grant.call_id, grant.carrier
        with self.engine.keep_claim(call_id):
            try:
                attempts = count()
                claimed = await retry_while_away(
                    lambda: self._claim_call(organization_id, call_id, carrier, again=next(attempts) > 0),
                    seconds=CLAIM_SECONDS,
                )
            except NotFound:
                await socket.close()
                return False
            await self._run_claimed_call(claimed, grant, socket)
        return True

    async def _run_claimed_call(self, claimed: _ClaimedCall, grant: MediaGrant, socket: MediaSocket) -> None:
        call = claimed.call
        structlog.contextvars.bind_contextvars(organization_id=str(call.organization_id), call_id=str(call.id))
        record = ServiceRecord({"telephony": call.carrier})
        try:
            carrier_row = choose_configuration(claimed.configurations, Capability.TELEPHONY, call.carrier)
            async with self.providers.use_configuration(carrier_row, TelephonyProvider) as provider:
                leg = ProviderCarrierLeg(self.settings, self.database, self.registry, call, provider)
                if call.answered_by == "machine" and calls.get_voicemail_policy(call).action == "hang_up":
                    await leg.hang_up()
                    await _finish_without_result(self.database, call, EndedReason.VOICEMAIL, None, record)
                    return
                media_url = format_media_url(self.settings, grant.token, grant.address)
                await self._converse(claimed, leg, socket, record, media_url)
        except ProviderError as error:
            await _finish_without_result(self.database, call, EndedReason.PROVIDER_FAILED, error.message, record)
            await hang_up(self.providers, call)
        finally:
            await socket.close()

    async def _claim_call(self, organization_id: UUID, call_id: UUID, carrier: str, *, again: bool) -> _ClaimedCall:
        """Claim a call for this process. `again`: an earlier attempt may have succeeded, and its reply been lost."""
        await self.lease.ensure()
        async with self.database.write(organization_id) as session:
            configurations = await list_configurations(session, Capability.TELEPHONY, *CAPABILITIES)
            call, agent = await lock_call_with_agent(session, call_id) or (None, None)
            if (
                call is None
                or is_over(call)
                or call.holder not in (None, self.lease.node if again else None)
                or call.carrier != carrier
                or agent is None
            ):
                raise NotFound
            other_number, agents = calls.get_other_number(call), await claim_agents(session, agent)
            claimed = _ClaimedCall(
                call,
                agent,
                configurations,
                agents,
                await read_contact(session, agents.values(), other_number),
                await open_disclosure(session, agent, other_number, voicemail=call.voicemail),
                call.direction == "outbound" and await lock_queue_entry(session, call.id, "calling") is not None,
                await list_messages_before_call(session, call),
            )
            call.agent_version = agent.version
            await start_call(session, call)
            call.holder, call.watch_at = self.lease.node, None
            return claimed

    async def _converse(
        self, claimed: _ClaimedCall, leg: ProviderCarrierLeg, socket: MediaSocket, record: ServiceRecord, media_url: str
    ) -> None:
        call, agent, disclosure = claimed.call, claimed.agent, claimed.disclosure
        voicemail = calls.get_voicemail_policy(call)
        has_queue = claimed.begins_with_person or any(
            each.agent.settings.queue_wait_seconds is not None for each in claimed.agents.values()
        )
        log = DatabaseCallLog(self.database, call)
        agents = CallAgents(
            self.database,
            self.providers,
            self.agent_tools,
            call,
            claimed.agents,
            claimed.configurations,
            partial(self._build_tools, call),
            {agent.id: record},
        )
        async with agents, log:
            live = LiveCall(
                call_id=call.id,
                organization_id=call.organization_id,
                direction="inbound" if call.direction == "inbound" else "outbound",
                from_number=call.from_number,
                to_number=call.to_number,
                agent=await agents.open(agent.id, disclosure),
                codec=leg.carrier.create_media_codec(media_url),
                leg=leg,
                log=log,
                recording_path=build_spool_path(self.settings, call.organization_id, call.id),
                variables=build_variables(call, claimed.contact),
                history=claimed.history,
                voicemail=call.voicemail,
                digits_as_tones=not leg.carrier.capabilities.send_digits,
                disclosure=disclosure,
                voicemail_policy=voicemail,
                judges_answer=not (voicemail.asks_carrier and leg.carrier.capabilities.machine_detection),
                machine_answered=call.answered_by == "machine",
                queue=DatabasePersonQueue(self.database, call) if has_queue else None,
                begins_with_person=claimed.begins_with_person,
                colleagues=agents if len(claimed.agents) > 1 else None,
            )
            async with run_beside(self.uploader.upload_segments(call)):
                result = await self.engine.run_call(live, socket)
        agents.add_overtaken(result.agent_usage)
        await retry_while_away(
            partial(_save_result, self.database, call, result, record, agents.failures), seconds=RESULT_SECONDS
        )
        self.uploader.recordings_due.set()

    def _build_tools(self, call: Call, agent: Agent) -> list[Tool]:
        send_text = partial(_send_text, self.database, call, agent.id)
        return [
            SendTextMessage(send_text, agent.settings),
            OptOut(partial(_opt_out, self.database, call)),
        ]


async def _send_text(database: Database, call: Call, agent_id: UUID, body: str, to_number: str | None) -> None:
    """Send a text message from our number of the call."""
    target = to_number or calls.get_other_number(call)
    if not target.startswith("+"):
        raise ToolError("the caller's number is withheld: ask for one")
    async with database.write(call.organization_id) as session:
        session.cause_depth = call.cause_depth
        number = await find_phone_number(session, calls.get_own_number(call))
        if number is None:
            raise ToolError("the call's phone number is not the organization's any more")
        try:
            content = sms.MessageContent(body)
            await sms.compose_message(session, number, target, content, author="agent", agent_id=agent_id)
        except ApiError as error:
            raise ToolError(error.detail) from error


async def _opt_out(database: Database, call: Call) -> None:
    number = calls.get_other_number(call)
    if not number.startswith("+"):
        raise ToolError("the caller's number is withheld")
    async with database.write(call.organization_id) as session:
        await do_not_call.add_entry(session, number, source="call", note=f"Said in call {call.id}.")


async def _save_result(
    database: Database, live: Call, result: CallResult, record: ServiceRecord, failures: Sequence[ProviderFailure]
) -> None:
    async with database.write(live.organization_id) as session:
        call = await lock_row(session, Call, live.id)
        _save_record(call, record, failures)
        call.latencies = [asdict(turn) for turn in result.latencies]
        call.recording_error = result.recording_error
        if result.recording_error is not None:
            call.recording_due_at = now()
        elif result.recording_path is not None and result.recording_path.exists():
            call.recording_due_at = now() + SPOOL_TIME  # for this process, which has the recording
        call.transferred_to = result.transferred_to
        if result.machine_answered:
            call.answered_by = "machine"
        if is_over(call):  # the reconciler ended it: this process could not reach the database for a while
            metrics.leases_lost.labels("call").inc()
            return
        status: FinalStatus = "failed" if result.ended_reason in FAILURES else "completed"
        call.analysis_due_at = now()
        await finish_call(
            session,
            call,
            status,
            reason=result.ended_reason,
            error=result.error_message,
            used=(result.agent_usage, result.duration_seconds),
        )
        session.wake("analyze_call")


async def _finish_without_result(
    database: Database, live: Call, reason: EndedReason, error: str | None, record: ServiceRecord
) -> None:
    async def finish() -> None:
        async with database.write(live.organization_id) as session:
            call = await lock_row(session, Call, live.id)
            _save_record(call, record, list(record.failures.values()))
            await finish_call(
                session, call, "failed" if reason in FAILURES else "completed", reason=reason, error=error
            )

    await retry_while_away(finish, seconds=RESULT_SECONDS)


def _save_record(call: Call, record: ServiceRecord, failures: Sequence[ProviderFailure]) -> None:
    call.served_by = record.served
    call.provider_failures = [asdict(failure) for failure in failures]
