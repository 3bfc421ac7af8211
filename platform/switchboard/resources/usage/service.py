"""Monthly totals, from calls, text messages, what retention has deleted of them, and ledger entries."""

from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import text

from switchboard.foundation.database import TenantSession, now
from switchboard.resources.identity.models import Organization
from switchboard.resources.usage.schemas import UsageOut

# `zone` cuts the months in the organization's time zone.
_TOTALS = text(
    """
    select to_char(month, 'YYYY-MM') as period, sum(calls)::int as calls, sum(seconds)::int as seconds,
      sum(sent)::int as sent,
        sum(received)::int as received, sum(cost) as cost
    from (
        select date_trunc('month', created_at at time zone :zone) as month, count(*) as calls,
          sum(duration_seconds) as seconds,
            0 as sent, 0 as received, 0::numeric as cost
        from call where organization_id = :organization and created_at >= :since group by 1
        union all
        select date_trunc('month', created_at at time zone :zone), 0, 0, count(*) filter (where direction = 'outbound'
          and status <> 'failed'),
            count(*) filter (where direction = 'inbound'), 0
        from sms_message where organization_id = :organization and created_at >= :since group by 1
        union all
        select month::timestamp, calls, seconds, sent, received, 0
        from deleted_usage where organization_id = :organization and month >= (:since at time zone :zone)::date
        union all
        select date_trunc('month', created_at at time zone :zone), 0, 0, 0, 0, -sum(amount)
        from ledger_entry where organization_id = :organization and kind <> 'credit' and created_at >= :since group by 1
    ) parts group by month
    """
)


async def summarize_months(session: TenantSession, count: int) -> list[UsageOut]:
    """Summarize the last months, the current one first; months without usage are zeros."""
    organization = await session.get_one(Organization, session.organization_id)
    zone = ZoneInfo(organization.timezone)
    starts = _starts(now().astimezone(zone), count)
    values = {"organization": organization.id, "zone": organization.timezone, "since": starts[-1]}
    rows = {row.period: row for row in (await (await session.connection()).execute(_TOTALS, values)).all()}
    return [_usage(start.strftime("%Y-%m"), rows.get(start.strftime("%Y-%m"))) for start in starts]


def _starts(today: datetime, count: int) -> list[datetime]:
    first = today.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    starts = []
    for back in range(count):
        year, month = divmod(first.year * 12 + first.month - 1 - back, 12)
        starts.append(first.replace(year=year, month=month + 1))
    return starts


def _usage(period: str, row: object) -> UsageOut:
    def read(name: str) -> int:
        return getattr(row, name, 0)

    minutes = round(read("seconds") / 60, 2)
    return UsageOut(
        period=period,
        call_minutes=minutes,
        calls=read("calls"),
        sms_sent=read("sent"),
        sms_received=read("received"),
        cost=read("cost"),
    )
