"""The one answer to whether an organization may call or text a phone number now: `find_refusal`
(docs/decisions/0034-destinations.md).

Every way to a carrier asks it: calls and text messages of the API, campaigns, automations, forwards, browser calls, and
an agent's transfers and text messages. It reads the operator's suspension, the do-not-call list, the destinations, and
the limits of an hour: when an hour reaches one, calls and text messages pause for an hour. The pause is written in the
transaction that reaches the limit, so the next call or text message is refused. Calls are counted under the lock of the
organization's calls, and are exact. What limits compare is counted as it happens, and not when it is compared
(docs/decisions/0091-shares-of-connections.md).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from decimal import Decimal
from functools import partial
from typing import Final, Literal

import phonenumbers
import structlog
from phonenumbers import PhoneNumberType

from switchboard.foundation.audit import AuditAction, record_audit, record_audit_as
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.observability import metrics
from switchboard.foundation.web.errors import (
    ApiError,
    DestinationNotAllowed,
    OnDoNotCallList,
    OrganizationMoving,
    OrganizationSuspended,
    OutboundPaused,
    ValidationFailed,
)
from switchboard.resources.destinations import queries
from switchboard.resources.destinations.models import OutboundPause
from switchboard.resources.destinations.queries import HOUR
from switchboard.resources.destinations.schemas import NarrowedDestinations
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Destinations, OutboundLimits
from switchboard.resources.identity.service import get_policy

logger = structlog.get_logger()
MINUTE: Final = timedelta(minutes=1)
LimitName = Literal["calls_per_hour", "minutes_per_hour", "texts_per_hour", "spend_per_hour"]
UNITS: dict[str, str] = {
    "calls_per_hour": "calls",
    "minutes_per_hour": "minutes of calls",
    "texts_per_hour": "text messages",
    "spend_per_hour": "US dollars",
}
for _limit in UNITS:
    metrics.outbound_pauses.labels(_limit)  # so that the first pause is an increase

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
FICTITIOUS: Final = "+1555"
"""Numbers for examples and tests, which belong to nobody."""


@dataclass(slots=True)
class PauseState:
    """The limits of an organization's outbound work, and its last pause; None if there was none.

    A pause ends after an hour, at a full minute, so that no count of the minute in which it began is compared again, or
    as soon as the limit that caused it has another value. A suspension ends when the operator resumes the organization.
    """

    limits: OutboundLimits
    last: OutboundPause | None
    is_suspended: bool
    is_moving: bool

    def find_refusal(self) -> ApiError | None:
        """Return the reason for which the organization calls and texts nobody now: `OrganizationSuspended`,
        `OrganizationMoving`, or `OutboundPaused`. None if it may.
        """
        if self.is_suspended:
            return OrganizationSuspended()
        if self.is_moving:
            return OrganizationMoving()
        if self.last is None or self.last.ends_at <= now():
            return None
        if getattr(self.limits, self.last.limit_name, None) != self.last.limit_value:
            return None
        left = (self.last.ends_at - now()).total_seconds()
        return OutboundPaused(_describe(self.last), seconds=max(1, round(left)))

    async def pause_at_limit(self, session: WriteSession, name: LimitName, used: float) -> None:
        """Pause outbound work if what was used in the last hour has reached a limit, and it is not paused.

        A new pause is recorded once, in the audit log, the log, and the metrics.
        """
        limit = getattr(self.limits, name)
        if limit is None or used < limit or self.find_refusal() is not None:
            return
        pause = OutboundPause(
            organization_id=session.organization_id,
            limit_name=name,
            limit_value=limit,
            paused_at=now(),
            ends_at=now().replace(second=0, microsecond=0) + MINUTE + HOUR,
        )
        is_saved = await queries.replace_pause(session, pause, last=self.last)
        self.last = pause
        if is_saved:
            reason = _describe(pause)
            record_audit_as(session, session.organization_id, "system", AuditAction.OUTBOUND_PAUSED, reason)
            session.after_commit(partial(_report, pause, reason))


@dataclass(frozen=True, slots=True)
class OutboundRules:
    """All that decides about the numbers that an organization may call and text, but the do-not-call list.

    A number must be open by both parts: `policy` is the operator's, in the tenant file; `narrowed` is the owners'.
    """

    policy: Destinations
    narrowed: NarrowedDestinations
    pauses: PauseState


async def read_outbound_rules(session: ReadSession) -> OutboundRules:
    """Return the rules of the session's organization."""
    policy = await get_policy(session, session.organization_id)
    restrictions = await queries.get_restrictions(session)
    narrowed, suspended_at, moving_since, pause = restrictions
    own = NarrowedDestinations.model_validate(narrowed or {}, strict=False)
    pauses = PauseState(
        policy.outbound_limits, pause, is_suspended=suspended_at is not None, is_moving=moving_since is not None
    )
    return OutboundRules(policy.destinations, own, pauses)


async def find_refusal(session: ReadSession, phone_number: str, *, is_accepted: bool = False) -> ApiError | None:
    """Return why the organization may not call or text a number now, as the error of the API; None if it may.

    See `find_refusals`.
    """
    return (await find_refusals(session, [phone_number], is_accepted=is_accepted)).get(phone_number)


async def find_refusals(
    session: ReadSession, phone_numbers: Collection[str], *, is_accepted: bool = False
) -> dict[str, ApiError]:
    """Return those E.164 numbers that the organization may not call or text now, each with the error of the API:
    `OrganizationSuspended`, `OrganizationMoving`, `OutboundPaused`, `OnDoNotCallList`, or `DestinationNotAllowed`.

    With `is_accepted` for calls and text messages that were accepted before, which no pause and no move stops.
    """
    rules = await read_outbound_rules(session)
    paused = rules.pauses.find_refusal()
    if paused is not None and not (is_accepted and isinstance(paused, OrganizationMoving | OutboundPaused)):
        return dict.fromkeys(phone_numbers, paused)
    refusals: dict[str, ApiError] = {}
    listed = await do_not_call.filter_listed(session, phone_numbers)
    for phone_number in phone_numbers:
        if phone_number in listed:
            refusals[phone_number] = OnDoNotCallList()
        elif (reason := find_destination_refusal(rules.policy, rules.narrowed, phone_number)) is not None:
            refusals[phone_number] = DestinationNotAllowed(reason)
    return refusals


@dataclass(frozen=True, slots=True)
class LimitCounts:
    """The numbers of an organization that its limits compare: the calls that are under way without chats, the money
    that is held, and what outbound work has used of each limit of an hour.
    """

    running: int
    held: Decimal
    used: dict[LimitName, float]
    pauses: PauseState

    async def pause_at_reached(self, session: WriteSession, *names: LimitName) -> None:
        """Pause outbound work if it has reached one of these limits of an hour."""
        for name in names:
            await self.pauses.pause_at_limit(session, name, self.used[name])


async def read_limit_counts(session: ReadSession) -> LimitCounts:
    """Return the numbers of the session's organization that limits compare."""
    limits = (await get_policy(session, session.organization_id)).outbound_limits
    found, pause = await queries.read_counts(session)
    if isinstance(session, WriteSession):
        await merge_if_many(session, found.changes)
    used: dict[LimitName, float] = {
        "calls_per_hour": found.begun,
        "minutes_per_hour": float(found.talked),
        "texts_per_hour": found.texts,
        "spend_per_hour": float(found.spent),
    }
    pauses = PauseState(limits, pause, is_suspended=found.is_suspended, is_moving=found.is_moving)
    return LimitCounts(found.running, found.held, used, pauses)


async def merge_if_many(session: WriteSession, changes: int) -> None:
    """Merge the changes of counters, which each decision reads, if there are many: workers do so only every 5 s."""
    if changes > queries.MANY_CHANGES:
        await queries.merge_own_limit_counts(session)


async def pause_at_limits(session: WriteSession, *names: LimitName) -> None:
    """Pause outbound work if it has reached one of these limits of an hour. Without any of them nothing is read."""
    limits = (await get_policy(session, session.organization_id)).outbound_limits
    if any(getattr(limits, name) is not None for name in names):
        await (await read_limit_counts(session)).pause_at_reached(session, *names)


async def narrow_destinations(session: WriteSession, narrowed: NarrowedDestinations) -> None:
    """Replace what owners close. Raises `ValidationFailed` for a country that the policy does not open."""
    organization = await session.get_one(Organization, session.organization_id)
    opened = organization.policy.destinations.countries
    if opened is not None and (others := sorted(set(narrowed.countries) - set(opened))):
        raise ValidationFailed.field("countries", f"the operator has not opened {', '.join(others)}")
    organization.narrowed_destinations = narrowed.model_dump(mode="json")
    record_audit(session, AuditAction.DESTINATIONS_NARROWED, organization.id, fields=sorted(narrowed.model_fields_set))


def find_destination_refusal(policy: Destinations, narrowed: NarrowedDestinations, phone_number: str) -> str | None:
    """Return why the organization may not call or text a number, as a sentence; None if it may."""
    return _find_policy_refusal(policy, phone_number) or _find_own_refusal(narrowed, phone_number)


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


async def require_allowed_destination(session: ReadSession, phone_number: str) -> None:
    """Raise `DestinationNotAllowed` if the organization may not call or text the number."""
    rules = await read_outbound_rules(session)
    refusal = find_destination_refusal(rules.policy, rules.narrowed, phone_number)
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


async def _report(pause: OutboundPause, reason: str) -> None:
    metrics.outbound_pauses.labels(pause.limit_name).inc()
    logger.warning("outbound work paused", organization_id=str(pause.organization_id), reason=reason)


def _describe(pause: OutboundPause) -> str:
    return (
        f"Outbound calls and text messages are paused until {pause.ends_at.astimezone(UTC):%H:%M} UTC: the "
        f"organization has reached its limit of {pause.limit_value:g} {UNITS[pause.limit_name]} per hour."
    )
