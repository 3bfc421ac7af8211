"""Analytics on the wire (api-decisions, "Objects")."""

from datetime import date

from pydantic import Field

from switchboard.foundation.web.schemas import Answer, Dollars, Query


class DaysQuery(Query):
    """The period: so many days up to now, today included, in the organization's time zone."""

    days: int = Field(30, ge=1, le=90)


class Period(Answer):
    """First and last day."""

    first: date = Field(serialization_alias="from")
    to: date
    days: int


class Sentiment(Answer):
    """How many callers were in which mood."""

    positive: int
    neutral: int
    negative: int
    unknown: int


class OverviewOut(Answer):
    """The period's calls. Averages and rates are null where there is nothing to take them of."""

    period: Period
    total_calls: int
    completed_calls: int
    failed_calls: int = Field(description="Those that ended otherwise than `completed`.")
    inbound_calls: int
    outbound_calls: int
    total_minutes: float
    average_duration_seconds: float | None = Field(description="Of completed calls.")
    success_rate: float | None = Field(description="Share of successful calls among those that were judged, 0 to 1.")
    total_cost: Dollars
    average_cost: Dollars | None
    sentiment: Sentiment


class DayOut(Answer):
    """A day's calls."""

    date: date
    total: int
    completed: int
    failed: int
    inbound: int
    outbound: int
    minutes: float
    cost: Dollars


class DaysOut(Answer):
    """Every day of the period, oldest first, zeros included."""

    items: list[DayOut]
