"""The one decision about a phone number that is to be called or texted (docs/decisions/0034-destinations.md).

Every way to a carrier asks it: calls and text messages of the API, campaigns, automations, forwards, browser calls, and
an agent's transfers and text messages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import phonenumbers
from phonenumbers import PhoneNumberType
from sqlalchemy import bindparam
from sqlmodel import col, select

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession
from switchboard.foundation.web.errors import DestinationNotAllowed, ValidationFailed
from switchboard.resources.destinations.schemas import NarrowedDestinations
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Destinations, Policy
from switchboard.resources.identity.service import get_policy

CLOSED_TYPES: Final = {
    PhoneNumberType.PREMIUM_RATE: "a premium-rate number",
    PhoneNumberType.SHARED_COST: "a shared-cost number",
    PhoneNumberType.PERSONAL_NUMBER: "a personal number, which is forwarded at the caller's expense",
    PhoneNumberType.UNKNOWN: "not a number of its country's numbering plan",
}
"""Types that are closed by default. Networks ignore surplus digits, so a premium-rate number with more of them is of
no type and reaches the same service; unassigned ranges are misused for the same fraud.
"""
CLOSED_PREFIXES: Final = {
    "+870": "a satellite number",
    "+881": "a satellite number",
    "+882": "a number of an international network",
    "+883": "a number of an international network",
    "+878": "a personal number, which is forwarded at the caller's expense",
    "+979": "a premium-rate number",
    "+1900": "a premium-rate number",
}
"""Country codes of networks without a country (ITU-T E.164, list of assigned country codes), and the area code 900."""
_NARROWED: Final = select(Organization.narrowed_destinations).where(
    col(Organization.id) == bindparam("organization_id")
)
FICTITIOUS: Final = "+1555"
"""Numbers for examples and tests, which belong to nobody."""


@dataclass(frozen=True, slots=True)
class DestinationRules:
    """Numbers that an organization may call and text: a number must be open by both parts.

    `policy` is the operator's, in the tenant file; `narrowed` is the owners'.
    """

    policy: Destinations = field(default_factory=Destinations)
    narrowed: NarrowedDestinations = field(default_factory=NarrowedDestinations)


async def get_destination_rules(session: TenantSession) -> DestinationRules:
    """Return the rules of the session's organization."""
    policy = await get_policy(session, session.organization_id)
    narrowed = (await session.exec(_NARROWED, params={"organization_id": session.organization_id})).one()
    return DestinationRules(policy.destinations, NarrowedDestinations.model_validate(narrowed or {}, strict=False))


async def narrow_destinations(session: TenantSession, narrowed: NarrowedDestinations) -> None:
    """Replace what owners close. Raises `ValidationFailed` for a country that the policy does not open."""
    organization = await session.get_one(Organization, session.organization_id)
    opened = Policy.read(organization.policy).destinations.countries
    if opened is not None and (others := sorted(set(narrowed.countries) - set(opened))):
        raise ValidationFailed.field("countries", f"the operator has not opened {', '.join(others)}")
    organization.narrowed_destinations = narrowed.model_dump(mode="json")
    record_audit(session, AuditAction.DESTINATIONS_NARROWED, organization.id, fields=sorted(narrowed.model_fields_set))


def find_destination_refusal(rules: DestinationRules, phone_number: str) -> str | None:
    """Return why the organization may not call or text a number, as a sentence; None if it may."""
    return _find_policy_refusal(rules.policy, phone_number) or _find_own_refusal(rules.narrowed, phone_number)


def _find_policy_refusal(destinations: Destinations, phone_number: str) -> str | None:
    blocked = _find_prefix(destinations.block, phone_number)
    if blocked is not None:
        return f"The organization's destinations block numbers that begin with {blocked}."
    if _find_prefix(destinations.allow, phone_number) is not None:
        return None
    try:
        number = phonenumbers.parse(phone_number, None)
    except phonenumbers.NumberParseException:
        return f"{phone_number} is not an E.164 phone number."
    country = _find_country(number)
    if destinations.countries is not None and country not in destinations.countries:
        return f"The organization's destinations do not include {country or 'numbers without a country'}."
    prefix = _find_prefix(tuple(CLOSED_PREFIXES), phone_number)
    closed = CLOSED_PREFIXES[prefix] if prefix else CLOSED_TYPES.get(phonenumbers.number_type(number))
    if closed is None or phone_number.startswith(FICTITIOUS):
        return None
    return f"{phone_number} is {closed}. The organization's destinations do not allow it."


async def require_allowed_destination(session: TenantSession, phone_number: str) -> None:
    """Raise `DestinationNotAllowed` if the organization may not call or text the number."""
    refusal = find_destination_refusal(await get_destination_rules(session), phone_number)
    if refusal is not None:
        raise DestinationNotAllowed(refusal)


def _find_own_refusal(narrowed: NarrowedDestinations, phone_number: str) -> str | None:
    """Judge a number that the policy opens."""
    blocked = _find_prefix(narrowed.block, phone_number)
    if blocked is not None:
        return f"An owner of the organization blocks numbers that begin with {blocked}."
    country = _find_country(phonenumbers.parse(phone_number, None)) if narrowed.countries else None
    if narrowed.countries and country not in narrowed.countries:
        return f"An owner of the organization has closed {country or 'numbers without a country'}."
    return None


def _find_prefix(prefixes: Sequence[str], phone_number: str) -> str | None:
    return next((prefix for prefix in prefixes if phone_number.startswith(prefix)), None)


def _find_country(number: phonenumbers.PhoneNumber) -> str | None:
    """Return the country of a number, or the main country of its country code; None for one without a country."""
    code = phonenumbers.region_code_for_number(number) or phonenumbers.region_code_for_country_code(
        number.country_code or 0
    )
    return code if code in phonenumbers.SUPPORTED_REGIONS else None
