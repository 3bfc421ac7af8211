"""Aggregates over calls. A call counts on the day of its creation in the organization's time zone."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import Row, TextClause, text

from switchboard.foundation.database import ReadSession, now
from switchboard.resources.analytics.schemas import DayOut, OverviewOut, Period, Sentiment
from switchboard.resources.identity.models import Organization

_OVERVIEW = text(
    """
    select count(*) as total_calls, count(*) filter (where status = 'completed') as completed_calls,
        count(*) filter (where status in ('busy', 'no-answer', 'failed', 'canceled')) as failed_calls,
        count(*) filter (where direction = 'inbound') as inbound_calls,
          count(*) filter (where direction = 'outbound') as outbound_calls,
        coalesce(sum(duration_seconds), 0) as seconds,
          avg(duration_seconds) filter (where status = 'completed') as average_seconds,
        count(*) filter (where call_successful) as successful,
          count(*) filter (where call_successful is not null) as judged,
        coalesce(sum(cost_total), 0) as total_cost, avg(cost_total) as average_cost,
        count(*) filter (where user_sentiment = 'positive') as positive,
          count(*) filter (where user_sentiment = 'neutral') as neutral,
        count(*) filter (where user_sentiment = 'negative') as negative,
          count(*) filter (where user_sentiment = 'unknown') as unknown
    from call where organization_id = :organization and created_at >= :since
    """
)
_DAYS = text(
    """
    select date, sum(total)::int as total, sum(completed)::int as completed, sum(failed)::int as failed,
      sum(inbound)::int as inbound, sum(outbound)::int as outbound,
        round(sum(seconds) / 60.0, 2)::float8 as minutes, sum(cost) as cost
    from (
        select cast(:first as date) + n as date, 0 as total, 0 as completed, 0 as failed, 0 as inbound, 0 as outbound,
          0 as seconds, 0::numeric as cost
        from generate_series(0, :days - 1) n
        union all
        select (created_at at time zone :zone)::date, count(*), count(*) filter (where status = 'completed'),
          count(*) filter (where status in ('busy', 'no-answer', 'failed', 'canceled')),
            count(*) filter (where direction = 'inbound'), count(*) filter (where direction = 'outbound'),
          sum(duration_seconds), sum(cost_total)
        from call where organization_id = :organization and created_at >= :since group by 1
    ) parts group by date order by date
    """
)
_OUTCOMES = text(
    """
    select coalesce(ended_reason, status) as reason, count(*) as calls
    from call where organization_id = :organization and created_at >= :since and ended_at is not null group by 1
      order by 2 desc, 1
    """
)
_STEPS = ("endpoint", "transcript", "first_token", "first_audio", "first_frame")
# Only the latest calls: this shows current latency, and must not read millions of turns.
_LATENCIES = text(
    """
    select step, percentile_cont(0.5) within group (order by ms) as p50,
      percentile_cont(0.95) within group (order by ms) as p95
    from (
        select latencies from call
        where organization_id = :organization and created_at >= :since and jsonb_array_length(latencies) > 0
        order by created_at desc limit 500
    ) as latest, jsonb_array_elements(latencies) as turn,
    lateral unnest(cast(:steps as text[])) as step, lateral (select (turn ->> (step || '_ms'))::float as ms) as taken
    where ms is not null group by step
    """
)


async def summarize_calls(session: ReadSession, days: int) -> OverviewOut:
    """Summarize the calls of the period."""
    first, (row,) = await _read(session, _OVERVIEW, days)
    rounded = {
        "total_minutes": round(row.seconds / 60, 2),
        "average_duration_seconds": None if row.average_seconds is None else round(float(row.average_seconds), 1),
        "success_rate": round(row.successful / row.judged, 4) if row.judged else None,
    }
    period = Period(first=first, to=first + timedelta(days=days - 1), days=days)
    parts = {"period": period, "sentiment": Sentiment.model_validate(row)}
    return OverviewOut.model_validate({**row._asdict(), **rounded, **parts})


async def count_calls_by_day(session: ReadSession, days: int) -> list[DayOut]:
    """Count the calls of each day of the period."""
    _, rows = await _read(session, _DAYS, days)
    return [DayOut.model_validate(row) for row in rows]


class Outcome(NamedTuple):
    """Number of calls by ended reason, or by status where there is no reason."""

    reason: str
    calls: int


class StepLatency(NamedTuple):
    """Milliseconds from the caller's last voiced audio to one step of the answer: median and 95th percentile."""

    step: str
    p50: float
    p95: float


async def count_outcomes(session: ReadSession, days: int) -> list[Outcome]:
    """Count the outcomes of the period's calls, most frequent first."""
    _, rows = await _read(session, _OUTCOMES, days)
    return [Outcome(row.reason, row.calls) for row in rows]


async def measure_step_latencies(session: ReadSession, days: int) -> list[StepLatency]:
    """Measure the latency of each step over the turns of the latest 500 calls of the period, without the steps that no
    turn reached.
    """
    _, rows = await _read(session, _LATENCIES, days, steps=list(_STEPS))
    found = [StepLatency(row.step, row.p50, row.p95) for row in rows]
    return sorted(found, key=lambda latency: _STEPS.index(latency.step))


async def _read(
    session: ReadSession, statement: TextClause, days: int, **values: object
) -> tuple[date, Sequence[Row[Any]]]:
    """Return the first day of the period, and the rows of a statement about the period's calls."""
    organization = await session.get_one(Organization, session.organization_id)
    zone = ZoneInfo(organization.timezone)
    first = now().astimezone(zone).date() - timedelta(days=days - 1)
    period = {"since": datetime.combine(first, time(), zone), "first": first, "days": days}
    named = {"organization": organization.id, "zone": organization.timezone, **period, **values}
    return first, await session.fetch(statement, named)
