"""Placing calls with carriers, and the URLs that a carrier gets for a call.

A call is claimed, then requested, then recorded, so that no crash dials anybody twice.
"""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog

from switchboard.engine.conversation.call import EndedReason
from switchboard.engine.providers.instances import Providers, list_provider_names
from switchboard.engine.providers.request_spans import span_request
from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.observability import metrics, traces
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.paging import lock_row
from switchboard.foundation.web.signed_links import SignedTokens
from switchboard.plugin_sdk import (
    INVALID_NUMBER,
    CallbackUrls,
    OutboundCall,
    OutcomeUnknown,
    ProviderError,
    ProviderSettings,
    TelephonyProvider,
)
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.agents.models import Agent
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.media_servers import MediaServers
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import RINGING_TIMEOUT, expect_hang_up, finish_call, is_over, refuse_call
from switchboard.resources.destinations.service import find_refusal
from switchboard.resources.phone_numbers.queries import list_numbers_at_carrier

# URLs that a carrier gets for one call: its callbacks and its media socket.

PURPOSE = "media socket"


@dataclass(frozen=True, slots=True)
class MediaGrant:
    """The call that the holder of a media socket's `token` may connect.

    `address` is the server's in the URL of the socket; empty for the public one.
    """

    organization_id: UUID
    call_id: UUID
    carrier: str
    token: str
    address: str = ""


def build_media_url(
    settings: Settings, keyring: KeyRing, *, carrier: str, organization_id: UUID, call_id: UUID, address: str = ""
) -> str:
    """Build the URL of the call's media socket, which only its receiver can open. `address` is that of a server, empty
    for the public one.

    The token is in the path, because Twilio drops query strings.
    """
    place = (address,) if address else ()
    token = SignedTokens(keyring, PURPOSE).sign(organization_id.hex, call_id.hex, carrier, *place)
    return format_media_url(settings, token, address)


def read_media_token(keyring: KeyRing, token: str) -> MediaGrant | None:
    """Return the content of a media socket's token, or None if it is not ours."""
    parts = SignedTokens(keyring, PURPOSE).read(token)
    if parts is None:
        return None
    return MediaGrant(UUID(parts[0]), UUID(parts[1]), parts[2], token, *parts[3:])


def build_call_callback_urls(settings: Settings, call: Call) -> CallbackUrls:
    """Build the callback URLs of one call.

    They contain our id, because a callback may overtake the carrier's response.
    """
    return CallbackUrls(events=f"{settings.base_url}/carriers/{call.carrier}/{call.organization_id}/calls/{call.id}")


def format_media_url(settings: Settings, token: str, address: str) -> str:
    """Return the URL of the media socket with this token.

    A call keeps the token and the address that the carrier got: a carrier may have signed its URL, other keys make
    other tokens, and the socket may come by another address.
    """
    path = f"/media/{token}"
    return f"{address}{path}" if address else settings.build_socket_url(path)


logger = structlog.get_logger()
RING_SECONDS = 30
CAPACITY_INTERVAL = timedelta(seconds=2)
CARRIER_TIMEOUT = timedelta(seconds=30)
PLACEMENT_UNKNOWN = "The carrier never reported whether it placed the call."


@dataclass(frozen=True, slots=True)
class CallDialer:
    settings: Settings
    database: Database
    keyring: KeyRing
    providers: Providers
    media_servers: MediaServers

    async def place_with_carrier(self, organization_id: UUID, call_id: UUID) -> None:
        """Place a queued call, unless that has begun already.

        If the carrier fails, the organization's others are tried in order. A call that the organization may no longer
        place ends `failed`. If the carrier does not report whether it placed the call, its callbacks or the reconciler
        decide. While no server has capacity for the call, it stays queued, and the reconciler tries again.
        """
        with traces.span("dial", context=traces.build_call_context(call_id)):
            async with self.database.write(organization_id) as session:
                call = await lock_row(session, Call, call_id)
                if call.dialing_at is not None or call.status != "queued":
                    return
                refusal = await find_refusal(session, call.to_number, is_accepted=True)
                if refusal is not None:
                    await refuse_call(session, call, refusal)
                    return
                address = await self.media_servers.reserve_place(call_id)
                if address is None:
                    metrics.calls_not_admitted.labels("outbound").inc()
                    call.watch_at = now() + CAPACITY_INTERVAL
                    return
                call.dialing_at, call.watch_at = now(), now() + CARRIER_TIMEOUT
                agent = await session.find(Agent, call.agent_id)
                max_seconds = agent.settings.max_call_duration_seconds if agent else RING_SECONDS
                others = [
                    name for name in await list_provider_names(session, Capability.TELEPHONY) if name != call.carrier
                ]
            error = await self._request_call(call, max_seconds, address)
            while error is not None and error.retryable and others:
                reassigned = await _reassign(self.database, call, others.pop(0))
                if reassigned is None:
                    return
                call, error = reassigned, await self._request_call(reassigned, max_seconds, address)
            if error is not None:
                await self._record_placement(call, error=error.message, reason=map_error_code(error.code))
                await self.media_servers.release_place(call_id)

    async def _request_call(self, call: Call, max_seconds: int, address: str) -> ProviderError | None:
        """Ask the call's carrier to place it, with its audio at a server's address; return the error if it did not."""
        try:
            async with self.providers.use(call.organization_id, TelephonyProvider, call.carrier) as carrier:
                with span_request("place_call", carrier.name):
                    carrier_call_id = await carrier.place_call(self._build_order(call, carrier, max_seconds, address))
        except OutcomeUnknown as error:
            logger.warning(
                "carrier did not report whether it placed the call",
                call_id=str(call.id),
                carrier=call.carrier,
                reason=error.message,
            )
        except ProviderError as error:
            metrics.provider_failures.labels(Capability.TELEPHONY.value, call.carrier).inc()
            logger.warning(
                "carrier did not place the call", call_id=str(call.id), carrier=call.carrier, reason=error.message
            )
            return error
        else:
            await self._record_placement(call, carrier_call_id=carrier_call_id)
        return None

    async def reconcile_placement(self, organization_id: UUID, call_id: UUID) -> None:
        """Ask the carrier whether it placed a call, after a crash or without its response; never dial it again."""
        with traces.span("reconcile placement", context=traces.build_call_context(call_id)):
            async with self.database.write(organization_id) as session:
                call = await lock_row(session, Call, call_id)
                if call.status != "queued" or call.watch_at is None or call.watch_at > now():
                    return
                call.watch_at = now() + CARRIER_TIMEOUT
            try:
                async with self.providers.use(organization_id, TelephonyProvider, call.carrier) as carrier:
                    with span_request("find_call", carrier.name):
                        found = await carrier.find_call(str(call_id))
            except ProviderError as error:
                logger.warning(
                    "carrier did not report whether a call exists", call_id=str(call_id), reason=error.message
                )
                found = None
            await self._record_placement(call, carrier_call_id=found, error=None if found else PLACEMENT_UNKNOWN)

    async def _record_placement(
        self,
        placed: Call,
        *,
        carrier_call_id: str | None = None,
        error: str | None = None,
        reason: EndedReason | None = None,
    ) -> None:
        async with self.database.write(placed.organization_id) as session:
            call = await lock_row(session, Call, placed.id)
            if error is not None:
                await finish_call(session, call, "failed", reason=reason, error=error)
                return
            call.carrier_call_id = call.carrier_call_id or carrier_call_id
            if call.status == "queued":
                call.watch_at = now() + RINGING_TIMEOUT
        if call.status == "canceled":  # while the carrier was being asked
            await hang_up(self.providers, call)

    def _build_order(
        self, call: Call, carrier: TelephonyProvider[ProviderSettings], max_duration_seconds: int, address: str
    ) -> OutboundCall:
        voicemail = calls.get_voicemail_policy(call)
        detects = voicemail.asks_carrier and carrier.capabilities.machine_detection
        return OutboundCall(
            reference=str(call.id),
            from_number=call.from_number,
            to_number=call.to_number,
            media_url=build_media_url(
                self.settings,
                self.keyring,
                carrier=call.carrier,
                organization_id=call.organization_id,
                call_id=call.id,
                address=address,
            ),
            callbacks=build_call_callback_urls(self.settings, call),
            ring_seconds=RING_SECONDS,
            max_duration_seconds=max_duration_seconds,
            detect_machine=detects,
            await_greeting_end=detects and voicemail.action == "leave_message",
            metadata=call.call_metadata.value,
        )


async def _reassign(database: Database, refused: Call, carrier: str) -> Call | None:
    """Assign a call to another carrier, with one of that carrier's numbers as the caller id if there is one.

    Return None if the first carrier has placed the call after all.
    """
    async with database.write(refused.organization_id) as session:
        call = await lock_row(session, Call, refused.id)
        if is_over(call) or call.carrier_call_id is not None:
            return None
        for number in (await list_numbers_at_carrier(session, carrier))[:1]:
            call.from_number, call.phone_number_id = number.phone_number, number.id
        call.carrier, call.dialing_at, call.watch_at = carrier, now(), now() + CARRIER_TIMEOUT
        return call


def map_error_code(error_code: str | None) -> EndedReason | None:
    """Map a carrier's error code to a reason, if it says more than that the call failed."""
    return EndedReason.INVALID_NUMBER if error_code == INVALID_NUMBER else None


async def cancel_call(session: WriteSession, call: Call) -> None:
    """Cancel a call that nobody has answered; it must be locked. An answered call is left alone."""
    if call.status in ("queued", "ringing"):
        await finish_call(session, call, "canceled", reason=EndedReason.CANCELED)
        expect_hang_up(session, call)


async def hang_up(providers: Providers, call: Call) -> None:
    """End a call at its carrier; a failure is only logged."""
    if call.carrier_call_id is not None:
        await hang_up_leg(providers, call.organization_id, call.carrier, call.carrier_call_id)


async def hang_up_leg(providers: Providers, organization_id: UUID, carrier: str, carrier_call_id: str) -> None:
    """End the leg that a carrier knows by this id; a failure is only logged."""
    try:
        async with providers.use(organization_id, TelephonyProvider, carrier) as provider:
            with span_request("hang_up", provider.name):
                await provider.hang_up(carrier_call_id)
    except ProviderError as error:
        logger.warning(
            "carrier did not hang up", carrier=carrier, carrier_call_id=carrier_call_id, reason=error.message
        )
