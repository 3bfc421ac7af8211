"""Limits of an organization's outbound work: when an hour reaches one, calls and text messages pause for an hour.

The pause is written in the transaction that reaches the limit, so the next call or text message is refused. Calls are
counted under the lock of the organization's calls, and are exact.
"""

from dataclasses import dataclass
from datetime import UTC, timedelta
from functools import partial
from typing import Any, Final, Literal

import structlog
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import TenantSession, after_commit, now
from switchboard.foundation.observability import metrics
from switchboard.foundation.web.errors import OrganizationSuspended, OutboundPaused
from switchboard.resources.destinations.models import OutboundPause
from switchboard.resources.identity.policy import OutboundLimits
from switchboard.resources.identity.service import get_policy
from switchboard.resources.identity.suspension import is_suspended

logger = structlog.get_logger()
HOUR: Final = timedelta(hours=1)
LimitName = Literal["calls_per_hour", "minutes_per_hour", "texts_per_hour", "spend_per_hour"]
UNITS: dict[str, str] = {
    "calls_per_hour": "calls",
    "minutes_per_hour": "minutes of calls",
    "texts_per_hour": "text messages",
    "spend_per_hour": "US dollars",
}
for _limit in UNITS:
    metrics.outbound_pauses.labels(_limit)  # so that the first pause is an increase


@dataclass(slots=True)
class PauseState:
    """The limits of an organization's outbound work, and its last pause; None if there was none.

    A pause ends after an hour, or as soon as the limit that caused it has another value.
    """

    limits: OutboundLimits
    last: OutboundPause | None

    def describe(self) -> str | None:
        """Return why outbound calls and text messages are paused, as a sentence; None if they are not."""
        return _describe(self.last) if self.last is not None and _is_active(self.last, self.limits) else None

    def require_unpaused(self) -> None:
        """Raise `OutboundPaused` during a pause."""
        if self.last is not None and (reason := self.describe()) is not None:
            raise OutboundPaused(reason, seconds=max(1, round((self.last.ends_at - now()).total_seconds())))

    async def pause_at_limit(self, session: TenantSession, name: LimitName, used: float) -> None:
        """Pause outbound work if what was used in the last hour has reached a limit, and it is not paused.

        A new pause is recorded once, in the audit log, the log, and the metrics.
        """
        limit = getattr(self.limits, name)
        if limit is None or used < limit or self.describe() is not None:
            return
        pause = OutboundPause(
            organization_id=session.organization_id,
            limit_name=name,
            limit_value=limit,
            paused_at=now(),
            ends_at=now() + HOUR,
        )
        fresh = pause.model_dump()
        # Of several transactions that reach the limit at once, one writes the pause.
        unchanged = col(OutboundPause.paused_at) == (self.last.paused_at if self.last else None)
        written = await session.exec(
            insert(OutboundPause)
            .values(fresh)
            .on_conflict_do_update(index_elements=["organization_id"], set_=fresh, where=unchanged)
        )
        self.last = pause
        if written.rowcount:
            reason = _describe(pause)
            record_audit_as(session, session.organization_id, "system", AuditAction.OUTBOUND_PAUSED, reason)
            after_commit(session, partial(_report, pause, reason))


async def find_pause(session: TenantSession) -> str | None:
    """Return why outbound calls and text messages are paused, as a sentence; None if they are not.

    A suspension ends when the operator resumes the organization.
    """
    if await is_suspended(session):
        return OrganizationSuspended.default_detail
    return (await _read_pauses(session)).describe()


async def require_unpaused(session: TenantSession) -> None:
    """Raise `OutboundPaused` while the organization's calls and text messages are paused, and `OrganizationSuspended`
    while it is suspended.
    """
    if await is_suspended(session):
        raise OrganizationSuspended
    (await _read_pauses(session)).require_unpaused()


async def pause_at_limit(session: TenantSession, name: LimitName, used: SelectOfScalar[Any]) -> None:
    """Pause outbound work if the statement's total of the last hour has reached a limit."""
    if getattr((await get_policy(session, session.organization_id)).outbound_limits, name) is not None:
        pauses = await _read_pauses(session)
        if pauses.describe() is None:
            await pauses.pause_at_limit(session, name, (await session.exec(used)).one() or 0)


async def _report(pause: OutboundPause, reason: str) -> None:
    metrics.outbound_pauses.labels(pause.limit_name).inc()
    logger.warning("outbound work paused", organization_id=str(pause.organization_id), reason=reason)


async def _read_pauses(session: TenantSession) -> PauseState:
    limits = (await get_policy(session, session.organization_id)).outbound_limits
    if limits == OutboundLimits():
        return PauseState(limits, None)
    rows = session.select(OutboundPause).execution_options(populate_existing=True)
    return PauseState(limits, (await session.exec(rows)).one_or_none())


def _is_active(pause: OutboundPause, limits: OutboundLimits) -> bool:
    return pause.ends_at > now() and getattr(limits, pause.limit_name, None) == pause.limit_value


def _describe(pause: OutboundPause) -> str:
    return (
        f"Outbound calls and text messages are paused until {pause.ends_at.astimezone(UTC):%H:%M} UTC: the "
        f"organization has reached its limit of {pause.limit_value:g} {UNITS[pause.limit_name]} per hour."
    )
