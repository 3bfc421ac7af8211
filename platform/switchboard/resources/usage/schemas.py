"""API schemas of usage."""

from pydantic import Field

from switchboard.foundation.web.schemas import Answer, Dollars, Query


class UsageOut(Answer):
    """A month's totals, in the organization's time zone."""

    period: str = Field(examples=["2026-11"])
    call_minutes: float
    calls: int
    sms_sent: int
    sms_received: int
    cost: Dollars


class UsageHistoryOut(Answer):
    """Months, newest first."""

    items: list[UsageOut]


class HistoryQuery(Query):
    """Number of months."""

    months: int = Field(6, ge=1, le=12, description="Includes the current month.")
