"""API schemas of analytics."""

from datetime import date

from pydantic import Field

from switchboard.foundation.web.schemas import Answer, Dollars, Query


class DaysQuery(Query):
    """The period: a number of days up to and including today, in the organization's time zone."""

    days: int = Field(30, ge=1, le=90)


class Period(Answer):
    """First and last day of a period."""

    first: date = Field(serialization_alias="from")
    to: date
    days: int


class Sentiment(Answer):
    """Number of calls by the caller's sentiment."""

    positive: int
    neutral: int
    negative: int
    unknown: int


class OverviewOut(Answer):
    """Figures of the period's calls. An average or rate without calls is null."""

    period: Period
    total_calls: int
    completed_calls: int
    failed_calls: int = Field(description="Calls that ended with another status than `completed`.")
    inbound_calls: int
    outbound_calls: int
    total_minutes: float
    average_duration_seconds: float | None = Field(description="Average over completed calls.")
    success_rate: float | None = Field(
        description="Share of successful calls among those with a success judgment, 0 to 1."
    )
    total_cost: Dollars
    average_cost: Dollars | None
    sentiment: Sentiment


class DayOut(Answer):
    """Figures of one day."""

    date: date
    total: int
    completed: int
    failed: int
    inbound: int
    outbound: int
    minutes: float
    cost: Dollars


class DaysOut(Answer):
    """Every day of the period, oldest first, including days without calls."""

    items: list[DayOut]
