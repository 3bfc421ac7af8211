"""Opening hours of a phone number (docs/decisions/0008-schedules-and-calling-hours.md)."""

from calendar import monthrange
from datetime import UTC, datetime, time, timedelta
from typing import Literal, Self
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from switchboard.resources.identity.weekly_hours import WeeklyHours, find_start_day

LOOK_AHEAD = timedelta(days=8)


class Schedule(WeeklyHours):
    """Opening hours, and the action for calls outside them."""

    enabled: bool = Field(True, description="False: always open.")
    outside_action: Literal["forward", "voicemail", "hangup", "webhook"] = Field(
        "hangup",
        description=(
            "What happens to calls while closed; `forward` and `webhook` use the number's "
            "`forward_number` and `forward_webhook_url`."
        ),
    )

    @model_validator(mode="after")
    def _needs_hours(self) -> Self:
        if self.enabled and not self.slots:
            raise ValueError("an enabled schedule needs at least one slot")
        return self


def is_open(schedule: Schedule | None, moment: datetime) -> bool:
    """Return whether a schedule is open. No schedule, or a disabled one, is always open. A holiday closes the slots
    that begin on it.
    """
    if schedule is None or not schedule.enabled:
        return True
    began = (find_start_day(slot, moment, ZoneInfo(schedule.timezone)) for slot in schedule.slots)
    return any(day is not None and day.isoformat() not in schedule.holidays for day in began)


def find_next_change(schedule: Schedule | None, moment: datetime) -> datetime | None:
    """Return when the state next changes, in UTC; None if that is never or more than `LOOK_AHEAD` away."""
    if schedule is None or not schedule.enabled:
        return None
    now_open, zone = is_open(schedule, moment), ZoneInfo(schedule.timezone)
    today = moment.astimezone(zone).date()
    clocks = {time.fromisoformat(clock) for slot in schedule.slots for clock in (slot.start, slot.end)} | {time.min}
    turns = sorted(
        datetime.combine(today + timedelta(days=ahead), clock, zone).astimezone(UTC)
        for ahead in range(LOOK_AHEAD.days + 1)
        for clock in clocks
    )
    return next((turn for turn in turns if turn > moment and is_open(schedule, turn) != now_open), None)


def find_period_end(bought_at: datetime, moment: datetime) -> datetime:
    """Return the end of the billing period that contains `moment`: periods are months, counted from the purchase."""
    for months in range(1, 12 * 100):
        years, month = divmod(bought_at.month - 1 + months, 12)
        year, month = bought_at.year + years, month + 1
        day = min(bought_at.day, monthrange(year, month)[1])
        end = bought_at.replace(year=year, month=month, day=day, microsecond=0)
        if end > moment:
            return end
    return moment
