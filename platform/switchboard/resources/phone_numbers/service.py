"""Business rules of phone numbers."""

import secrets
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID, uuid5

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.outbound import OutboundClient, validate_public_url
from switchboard.foundation.web.errors import Conflict, InvalidState, NotFound, ValidationFailed
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk import SimulatedCarrier, TelephonyProvider
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.agents import service as agents
from switchboard.resources.billing import ledger
from switchboard.resources.destinations.clients import find_client_refusal, is_client
from switchboard.resources.destinations.service import require_allowed_destination
from switchboard.resources.identity.service import get_policy
from switchboard.resources.phone_numbers.models import FORWARD_WEBHOOK_LABEL, PhoneNumber
from switchboard.resources.phone_numbers.queries import OURS
from switchboard.resources.phone_numbers.schedule import find_period_end
from switchboard.resources.phone_numbers.schemas import PhoneNumberBuy, PhoneNumberOut, PhoneNumberUpdate


async def get_phone_number(session: ReadSession, number_id: UUID) -> PhoneNumber:
    """Return a phone number. Raises `NotFound`."""
    number = await session.find(PhoneNumber, number_id)
    if number is None or number.status not in OURS:
        raise NotFound
    return number


async def find_active_number(session: ReadSession, number_id: UUID | None) -> PhoneNumber | None:
    """Return the organization's active number; None if there is none."""
    number = await session.find(PhoneNumber, number_id)
    return number if number is not None and number.status == "active" else None


async def require_number(session: ReadSession, number_id: str, *, field: str) -> PhoneNumber:
    """Return the active number in a request. Raises `ValidationFailed`, with the same message for an unknown number
    and one of another organization.
    """
    number = await find_active_number(session, parse_id(number_id))
    if number is None:
        raise ValidationFailed.field(field, "is not an active phone number of the organization")
    return number


def is_simulated(registry: Registry, number: PhoneNumber) -> bool:
    """Return whether a number is that of a simulated carrier: it has no rent, and simulated callers can call it."""
    carrier = registry.find_provider_class(TelephonyProvider, number.carrier)
    return carrier is not None and issubclass(carrier, SimulatedCarrier)


async def get_monthly_price(session: ReadSession) -> Decimal:
    """Return the price of a month of a number, in US dollars."""
    return Decimal(str((await get_policy(session, session.organization_id)).prices.number_month))


async def charge_due_months(session: WriteSession, number: PhoneNumber) -> None:
    """Charge the months that have started since the last charge. Rent may take a prepaid balance below zero."""
    while number.billed_until is not None and number.billed_until <= now():
        # The reference by which the ledger charges the month once.
        month = uuid5(number.id, number.billed_until.isoformat())
        await ledger.settle_hold(session, "number", month, await get_monthly_price(session))
        number.billed_until = find_period_end(number.created_at, number.billed_until)


async def begin_purchase(session: WriteSession, data: PhoneNumberBuy, *, carrier: str) -> PhoneNumber:
    """Save the intent to buy before the carrier is asked, so that no purchase is forgotten.

    Raises `ValidationFailed` for an unknown agent, `Conflict` for a number in use on this server, and
    `InsufficientBalance`.
    """
    number = PhoneNumber(
        organization_id=session.organization_id,
        phone_number=data.phone_number,
        friendly_name=data.friendly_name or data.phone_number,
        inbound_agent_id=await find_answering_agent(session, data.inbound_agent_id),
        carrier=carrier,
        carrier_address=data.carrier_address,
        carrier_requirements=data.carrier_requirements,
    )
    session.add(number)
    await session.flush_or_raise(Conflict("This phone number is already in use."))
    await ledger.hold_funds(session, number.id, await get_monthly_price(session))
    record_audit(session, AuditAction.PHONE_NUMBER_ORDERED, number.id, fields=data.model_fields_set)
    return number


async def finish_purchase(session: WriteSession, number_id: UUID, *, carrier_number_id: str, sms: bool) -> PhoneNumber:
    """Record that the carrier has sold the number."""
    number = await session.get_one(PhoneNumber, number_id, with_for_update=True)
    number.status, number.carrier_number_id, number.sms_active = "active", carrier_number_id, sms
    if number.billed_until is None:
        number.billed_until = find_period_end(number.created_at, number.created_at)
        await ledger.settle_hold(session, "number", number.id, await get_monthly_price(session))
    return number


async def fail_purchase(session: WriteSession, number_id: UUID) -> None:
    """Record that the carrier has refused."""
    number = await session.get_one(PhoneNumber, number_id, with_for_update=True)
    number.status = "failed"
    await ledger.settle_hold(session, "number", number.id, Decimal(0))


@dataclass(frozen=True, slots=True)
class PhoneNumberUpdater:
    keyring: KeyRing
    outbound: OutboundClient
    registry: Registry

    async def update(
        self, session: WriteSession, number_id: UUID, data: PhoneNumberUpdate
    ) -> tuple[PhoneNumber, str | None]:
        """Change the given fields that differ; return the number and, if another webhook URL was set, the new secret
        that signs requests to it.

        Raises `NotFound`, `ValidationFailed` for values that cannot be used, and `DestinationNotAllowed` for a number
        that the organization may not call.
        """
        number = await get_phone_number(session, number_id)
        data = data.keep_changes(PhoneNumberOut.from_row(number))
        given = data.model_fields_set
        secret = None
        if not given:
            return number, secret
        if "friendly_name" in given:
            number.friendly_name = data.friendly_name
        if "inbound_agent_id" in given:
            number.inbound_agent_id = await find_answering_agent(session, data.inbound_agent_id)
        if "schedule" in given:
            number.schedule = data.schedule.model_dump() if data.schedule else None
        if "sms_schedule" in given:
            number.sms_schedule = data.sms_schedule.model_dump() if data.sms_schedule else None
        if "forward_number" in given:
            if data.forward_number is not None:
                await self._check_forward(session, number, data.forward_number)
            number.forward_number = data.forward_number
        if "forward_webhook_url" in given:
            secret = self._set_webhook(number, data.forward_webhook_url)
        record_audit(session, AuditAction.PHONE_NUMBER_UPDATED, number.id, fields=given)
        return number, secret

    async def _check_forward(self, session: ReadSession, number: PhoneNumber, destination: str) -> None:
        if not is_client(destination):
            await require_allowed_destination(session, destination)
        elif (refusal := await find_client_refusal(session, self.registry, number.carrier)) is not None:
            raise ValidationFailed.field("forward_number", refusal)

    def _set_webhook(self, number: PhoneNumber, url: str | None) -> str | None:
        if url is None:
            number.forward_webhook_url = number.forward_webhook_secret = None
            return None
        number.forward_webhook_url = validate_public_url(self.outbound, url, field="forward_webhook_url")
        secret = f"whsec_{secrets.token_urlsafe(32)}"
        number.forward_webhook_secret = self.keyring.encrypt(secret, get_webhook_secret_label(number))
        return secret


async def schedule_release(session: WriteSession, number_id: UUID) -> PhoneNumber:
    """Schedule a number's release for the end of its billing period; until then it works. An entered number has no
    billing period. Raises `NotFound`, `InvalidState`.
    """
    number = await get_phone_number(session, number_id)
    if number.status != "active":
        raise InvalidState("The phone number's release is already scheduled.")
    moment = now()
    ends = moment if number.billed_until is None else find_period_end(number.created_at, moment)
    number.status, number.release_at = "pending_release", ends
    record_audit(session, AuditAction.PHONE_NUMBER_RELEASED, number.id)
    return number


def get_webhook_secret_label(number: PhoneNumber) -> str:
    """Return the encryption label of a number's webhook secret."""
    return FORWARD_WEBHOOK_LABEL.format(id=number.id, organization_id=number.organization_id)


async def find_answering_agent(session: ReadSession, agent_id: str | None) -> UUID | None:
    """Return the id of the agent in a request. Raises `ValidationFailed` unless it is the organization's."""
    return (
        (await agents.require_agent(session, agent_id, field="inbound_agent_id")).id if agent_id is not None else None
    )
