"""API schemas of usage."""

from pydantic import Field

from switchboard.foundation.web.schemas import Answer, Dollars, Query


class UsageOut(Answer):
    """A month's totals, in the organization's time zone."""

    period: str = Field(examples=["2026-11"], description="Month, `YYYY-MM`.")
    call_minutes: float = Field(description="Minutes of all calls.")
    calls: int = Field(description="Number of calls.")
    sms_sent: int = Field(description="Number of text messages sent.")
    sms_received: int = Field(description="Number of text messages received.")
    cost: Dollars = Field(description="US dollars of calls and text messages.")


class UsageHistoryOut(Answer):
    """Months, newest first."""

    items: list[UsageOut] = Field(description="Months, newest first.")


class HistoryQuery(Query):
    """Number of months."""

    months: int = Field(6, ge=1, le=12, description="Number of months, with the current one.")
