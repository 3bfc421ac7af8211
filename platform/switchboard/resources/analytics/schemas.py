"""API schemas of analytics."""

import datetime

from pydantic import Field

from switchboard.foundation.web.schemas import Answer, Dollars, Query


class DaysQuery(Query):
    """The period: a number of days up to and including today, in the organization's time zone."""

    days: int = Field(30, ge=1, le=90, description="Number of days up to and including today.")


class Period(Answer):
    """First and last day of a period."""

    first: datetime.date = Field(serialization_alias="from", description="First day.")
    to: datetime.date = Field(description="Last day.")
    days: int = Field(description="Number of days.")


class Sentiment(Answer):
    """Number of calls by the caller's sentiment."""

    positive: int = Field(description="Calls of satisfied parties.")
    neutral: int = Field(description="Calls of neutral parties.")
    negative: int = Field(description="Calls of dissatisfied parties.")
    unknown: int = Field(description="Calls without a judgment.")


class OverviewOut(Answer):
    """Figures of the period's calls. An average or rate without calls is null."""

    period: Period = Field(description="The period.")
    total_calls: int = Field(description="All calls of the period.")
    completed_calls: int = Field(description="Calls with the status `completed`.")
    failed_calls: int = Field(description="Calls that ended with another status than `completed`.")
    inbound_calls: int = Field(description="Calls that others placed.")
    outbound_calls: int = Field(description="Calls that the platform placed.")
    total_minutes: float = Field(description="Minutes of all calls.")
    average_duration_seconds: float | None = Field(description="Average over completed calls.")
    success_rate: float | None = Field(
        description="Share of successful calls among those with a success judgment, 0 to 1."
    )
    total_cost: Dollars = Field(description="US dollars of all calls.")
    average_cost: Dollars | None = Field(description="US dollars of a call; null without calls.")
    sentiment: Sentiment = Field(description="Number of calls by the other party's sentiment.")


class DayOut(Answer):
    """Figures of one day."""

    date: datetime.date = Field(description="The day.")
    total: int = Field(description="All calls of the day.")
    completed: int = Field(description="Calls with the status `completed`.")
    failed: int = Field(description="Calls that ended with another status.")
    inbound: int = Field(description="Calls that others placed.")
    outbound: int = Field(description="Calls that the platform placed.")
    minutes: float = Field(description="Minutes of all calls.")
    cost: Dollars = Field(description="US dollars of all calls.")


class DaysOut(Answer):
    """Every day of the period, oldest first, including days without calls."""

    items: list[DayOut] = Field(description="Days, oldest first.")
