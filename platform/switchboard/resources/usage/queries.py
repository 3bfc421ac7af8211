"""Monthly totals, from calls, text messages, what retention has deleted of them, and ledger entries."""

from zoneinfo import ZoneInfo

from sqlalchemy import text

from switchboard.foundation.database import ReadSession, now
from switchboard.resources.identity.models import Organization
from switchboard.resources.usage.schemas import UsageOut

# `zone` cuts the months in the organization's time zone.
_TOTALS = text(
    """
    select to_char(month, 'YYYY-MM') as period, sum(calls)::int as calls,
      round(sum(seconds) / 60.0, 2)::float8 as call_minutes, sum(sent)::int as sms_sent,
        sum(received)::int as sms_received, sum(cost) as cost
    from (
        select date_trunc('month', cast(:since as timestamptz) at time zone :zone)
          + make_interval(months => n) as month, 0 as calls, 0 as seconds, 0 as sent, 0 as received, 0::numeric as cost
        from generate_series(0, :count - 1) n
        union all
        select date_trunc('month', created_at at time zone :zone), count(*), sum(duration_seconds), 0, 0, 0
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
    ) parts group by month order by month desc
    """
)


async def summarize_months(session: ReadSession, count: int) -> list[UsageOut]:
    """Summarize the last months, the current one first; months without usage are zeros."""
    organization = await session.get_one(Organization, session.organization_id)
    zone = ZoneInfo(organization.timezone)
    today = now().astimezone(zone)
    year, month = divmod(today.year * 12 + today.month - count, 12)
    since = today.replace(year=year, month=month + 1, day=1, hour=0, minute=0, second=0, microsecond=0)
    values = {"organization": organization.id, "zone": organization.timezone, "since": since, "count": count}
    return [UsageOut.model_validate(row) for row in await session.fetch(_TOTALS, values)]
