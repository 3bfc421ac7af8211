"""Numbers of carriers that sell none, such as SIP trunks: the organization enters them."""

from collections.abc import Sequence

from switchboard.engine.providers.instances import find_first_provider
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.errors import Conflict, InvalidState, ValidationFailed
from switchboard.plugin_sdk import TelephonyProvider
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.queries import list_numbers_at_carrier, list_phone_numbers
from switchboard.resources.phone_numbers.schemas import MAX_ENTERED, EnteredNumber, PhoneNumbersImport
from switchboard.resources.phone_numbers.service import find_answering_agent


async def find_entering_carrier(session: ReadSession, registry: Registry) -> str | None:
    """Return the name of the organization's first carrier that sells no numbers; None if all sell them."""
    return await find_first_provider(
        session, registry, TelephonyProvider, lambda carrier: not carrier.capabilities.sells_numbers
    )


async def enter_numbers(session: WriteSession, registry: Registry, data: PhoneNumbersImport) -> list[PhoneNumber]:
    """Enter numbers, active at once and without rent. All are entered, or none.

    Raises `InvalidState` if no carrier of the organization has such numbers, `ValidationFailed` for a number that is
    there twice and for an unknown agent, and `Conflict` for a number that any organization of this server has.
    """
    carrier = await find_entering_carrier(session, registry)
    kind = registry.find_provider_class(TelephonyProvider, carrier) if carrier else None
    if carrier is None or kind is None:
        raise InvalidState("The organization's carriers sell their numbers: buy them, or take them over.")
    seen: set[str] = set()
    for place, given in enumerate(data.numbers):
        if given.phone_number in seen:
            raise ValidationFailed.field(f"numbers.{place}.phone_number", "is in the list twice")
        seen.add(given.phone_number)
    agent_id = await find_answering_agent(session, data.inbound_agent_id)
    entered = []
    for given in data.numbers:
        number = PhoneNumber(
            organization_id=session.organization_id,
            phone_number=given.phone_number,
            friendly_name=given.friendly_name or given.phone_number,
            inbound_agent_id=agent_id,
            status="active",
            sms_active=kind.capabilities.text_messages,
            carrier=carrier,
        )
        session.add(number)
        await session.flush_or_raise(Conflict(f"The phone number {given.phone_number} is already in use."))
        record_audit(session, AuditAction.PHONE_NUMBER_ENTERED, number.id)
        entered.append(number)
    return entered


async def enter_missing_numbers(
    session: WriteSession, registry: Registry, numbers: Sequence[EnteredNumber]
) -> list[PhoneNumber]:
    """Enter those of the numbers that the organization does not have; raises as `enter_numbers` does."""
    known = {number.phone_number for number in await list_phone_numbers(session)}
    missing = [given for given in numbers if given.phone_number not in known]
    entered = []
    for start in range(0, len(missing), MAX_ENTERED):
        body = PhoneNumbersImport(numbers=missing[start : start + MAX_ENTERED])
        entered += await enter_numbers(session, registry, body)
    return entered


async def list_entered_numbers(session: ReadSession, registry: Registry) -> list[PhoneNumber]:
    """List the organization's numbers at the carrier for which it enters them, oldest first."""
    carrier = await find_entering_carrier(session, registry)
    return await list_numbers_at_carrier(session, carrier) if carrier else []
