"""Calls that an organization may start now, read by one statement under the lock of its calls."""

from dataclasses import dataclass

from sqlalchemy import Boolean, bindparam, case, func, inspect, or_
from sqlalchemy import select as select_columns
from sqlmodel import col

from switchboard.foundation.database import TenantSession, fetch_rows, lock_name
from switchboard.foundation.web.errors import ApiError, TooManyCalls
from switchboard.resources.calls.models import CHAT, Call
from switchboard.resources.calls.outbound_limits import CALLS_BEGUN, MINUTES_TALKED, build_hour
from switchboard.resources.calls.states import ORDER
from switchboard.resources.destinations.models import OutboundPause
from switchboard.resources.destinations.service import PauseState
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.service import get_policy

_RUNNING = (
    select_columns(func.count())
    .select_from(Call)
    .where(
        col(Call.organization_id) == bindparam("organization_id"),
        col(Call.ended_at).is_(None),
        col(Call.carrier) != CHAT,
        or_(*(col(Call.status) == status for status in ORDER)),
    )
)
_PAUSE = inspect(OutboundPause).local_table.c
# One statement, because all other calls of the organization wait while it runs. PostgreSQL counts the hour only for an
# organization that has such a limit.
_ALLOWANCE = (
    select_columns(
        _RUNNING.scalar_subquery().label("running"),
        case((bindparam("limits_calls", type_=Boolean), CALLS_BEGUN.scalar_subquery())).label("calls"),
        case((bindparam("limits_minutes", type_=Boolean), MINUTES_TALKED.scalar_subquery())).label("minutes"),
        col(Organization.suspended_at).is_not(None).label("is_suspended"),
        *_PAUSE,
    )
    .select_from(Organization)
    .outerjoin(OutboundPause, col(OutboundPause.organization_id) == col(Organization.id))
    .where(col(Organization.id) == bindparam("organization_id"))
)


@dataclass(slots=True)
class CallAllowance:
    """Calls that an organization may start. Its transaction holds the lock of calls, so no other changes the numbers.

    `calls_left` is how many more concurrent calls the policy allows, without chats. `begun` and `talked` are the
    outbound calls and minutes of the last hour; 0 without a limit of them.
    """

    calls_left: int
    pauses: PauseState
    begun: int
    talked: float

    def find_refusal(self) -> ApiError | None:
        """Return why no outbound call may start now: `OrganizationSuspended`, `OutboundPaused`, or `TooManyCalls`; None
        if one may.
        """
        return self.pauses.find_refusal() or self.find_capacity_refusal()

    def find_capacity_refusal(self) -> TooManyCalls | None:
        """Return why no call at all may start now, not even an inbound one; None if one may."""
        return None if self.calls_left > 0 else TooManyCalls()

    async def count_outbound_call(self, session: TenantSession) -> None:
        """Count a call that has been added, and pause outbound work if the organization has reached a limit."""
        self.calls_left -= 1
        self.begun += 1
        await self.pauses.pause_at_limit(session, "calls_per_hour", self.begun)
        await self.pauses.pause_at_limit(session, "minutes_per_hour", self.talked)


async def acquire_call_allowance(session: TenantSession) -> CallAllowance:
    """Return which calls the organization may start. Others that ask wait until this transaction ends."""
    policy = await get_policy(session, session.organization_id)  # read before the lock is taken
    limits = policy.outbound_limits
    await lock_calls(session)
    values = {
        "organization_id": session.organization_id,
        "limits_calls": limits.calls_per_hour is not None,
        "limits_minutes": limits.minutes_per_hour is not None,
        **build_hour(),
    }
    (found,) = await fetch_rows(session, _ALLOWANCE, values)
    pause = {column.name: found[column.name] for column in _PAUSE}
    return CallAllowance(
        calls_left=policy.max_concurrent_calls - found["running"],
        pauses=PauseState(
            limits,
            OutboundPause(**pause) if found["organization_id"] is not None else None,
            is_suspended=found["is_suspended"],
        ),
        begun=found["calls"] or 0,
        talked=float(found["minutes"] or 0),
    )


async def lock_calls(session: TenantSession) -> None:
    """Let no other transaction start a call of the organization, or dial for its campaigns, until this one ends."""
    await lock_name(session, f"calls of {session.organization_id}")
