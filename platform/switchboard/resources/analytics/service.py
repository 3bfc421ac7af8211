"""Aggregates over calls. A call counts on the day of its creation in the organization's time zone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Row, TextClause, text

from switchboard.foundation.database import TenantSession, now
from switchboard.resources.analytics.schemas import DayOut, OverviewOut, Period, Sentiment
from switchboard.resources.identity.models import Organization

_OVERVIEW = text(
    """
    select count(*) as total, count(*) filter (where status = 'completed') as completed,
        count(*) filter (where status in ('busy', 'no-answer', 'failed', 'canceled')) as failed,
        count(*) filter (where direction = 'inbound') as inbound,
          count(*) filter (where direction = 'outbound') as outbound,
        coalesce(sum(duration_seconds), 0) as seconds,
          avg(duration_seconds) filter (where status = 'completed') as average_seconds,
        count(*) filter (where call_successful) as successful,
          count(*) filter (where call_successful is not null) as judged,
        coalesce(sum(cost_total), 0) as cost, avg(cost_total) as average_cost,
        count(*) filter (where user_sentiment = 'positive') as positive,
          count(*) filter (where user_sentiment = 'neutral') as neutral,
        count(*) filter (where user_sentiment = 'negative') as negative,
          count(*) filter (where user_sentiment = 'unknown') as unknown
    from call where organization_id = :organization and created_at >= :since
    """
)
_DAYS = text(
    """
    select (created_at at time zone :zone)::date as day, count(*) as total,
      count(*) filter (where status = 'completed') as completed,
        count(*) filter (where status in ('busy', 'no-answer', 'failed', 'canceled')) as failed,
        count(*) filter (where direction = 'inbound') as inbound,
          count(*) filter (where direction = 'outbound') as outbound,
        sum(duration_seconds) as seconds, sum(cost_total) as cost
    from call where organization_id = :organization and created_at >= :since group by 1
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """Number of calls by ended reason, or by status where there is no reason."""

    reason: str
    calls: int


@dataclass(frozen=True, slots=True)
class StepLatency:
    """Milliseconds from the caller's last voiced audio to one step of the answer: median and 95th percentile."""

    step: str
    p50: float
    p95: float


async def summarize_calls(session: TenantSession, days: int) -> OverviewOut:
    """Summarize the calls of the period."""
    first, (row,) = await _read(session, _OVERVIEW, days)
    return OverviewOut(
        period=Period(first=first, to=first + timedelta(days=days - 1), days=days),
        total_calls=row.total,
        completed_calls=row.completed,
        failed_calls=row.failed,
        inbound_calls=row.inbound,
        outbound_calls=row.outbound,
        total_minutes=round(row.seconds / 60, 2),
        average_duration_seconds=None if row.average_seconds is None else round(float(row.average_seconds), 1),
        success_rate=round(row.successful / row.judged, 4) if row.judged else None,
        total_cost=row.cost,
        average_cost=row.average_cost,
        sentiment=Sentiment(positive=row.positive, neutral=row.neutral, negative=row.negative, unknown=row.unknown),
    )


async def count_calls_by_day(session: TenantSession, days: int) -> list[DayOut]:
    """Count the calls of each day of the period."""
    first, found = await _read(session, _DAYS, days)
    rows = {row.day: row for row in found}
    return [_day(day, rows.get(day)) for day in (first + timedelta(days=n) for n in range(days))]


async def count_outcomes(session: TenantSession, days: int) -> list[Outcome]:
    """Count the period's calls by outcome, most frequent first."""
    _, rows = await _read(session, _OUTCOMES, days)
    return [Outcome(row.reason, row.calls) for row in rows]


async def measure_step_latencies(session: TenantSession, days: int) -> list[StepLatency]:
    """Measure the latency of each step over the turns of the latest 500 calls of the period; steps that no turn
    reached are left out.
    """
    _, rows = await _read(session, _LATENCIES, days, steps=list(_STEPS))
    return [StepLatency(row.step, row.p50, row.p95) for step in _STEPS for row in rows if row.step == step]


async def _read(
    session: TenantSession, statement: TextClause, days: int, **values: object
) -> tuple[date, Sequence[Row[Any]]]:
    """Return the first day of the period, and the rows of a statement about the period's calls."""
    organization = await session.get_one(Organization, session.organization_id)
    zone = ZoneInfo(organization.timezone)
    first = now().astimezone(zone).date() - timedelta(days=days - 1)
    period = {"organization": organization.id, "since": datetime.combine(first, time(), zone)}
    rows = await (await session.connection()).execute(statement, {**period, "zone": organization.timezone, **values})
    return first, rows.all()


def _day(day: date, row: Row[tuple[object, ...]] | None) -> DayOut:
    if row is None:
        return DayOut(date=day, total=0, completed=0, failed=0, inbound=0, outbound=0, minutes=0, cost=Decimal(0))
    return DayOut(
        date=day,
        total=row.total,
        completed=row.completed,
        failed=row.failed,
        inbound=row.inbound,
        outbound=row.outbound,
        minutes=round(row.seconds / 60, 2),
        cost=row.cost,
    )
