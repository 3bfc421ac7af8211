"""Calling hours, by the clocks of the called number's possible time zones."""

from datetime import datetime

import pytest
from switchboard.resources.identity.calling_hours import CallingClock
from switchboard.resources.identity.policy import CallingHours

LONDON, LOS_ANGELES, AUCKLAND_OR_CHATHAM, TOLL_FREE, FICTION = (
    "+442071838750",
    "+14155550100",
    "+6421555555",
    "+18005551212",
    "+15550100001",
)
OFFICE = CallingHours(start="09:00", end="17:00", days=("mon", "tue", "wed", "thu", "fri"))


@pytest.mark.parametrize(
    ("number", "moment", "opens"),
    [
        (LONDON, "2026-11-20T09:00:00Z", "2026-11-20T09:00:00Z"),
        (LONDON, "2026-11-20T08:59:59Z", "2026-11-20T09:00:00Z"),
        (LONDON, "2026-11-20T17:00:00Z", "2026-11-23T09:00:00Z"),  # Friday evening: Monday
        (LONDON, "2026-07-20T08:00:00Z", "2026-07-20T08:00:00Z"),  # summer time
        (LOS_ANGELES, "2026-11-20T09:00:00Z", "2026-11-20T17:00:00Z"),
        (
            AUCKLAND_OR_CHATHAM,
            "2026-11-19T19:30:00Z",
            "2026-11-19T20:00:00Z",
        ),  # Chatham is 45 minutes ahead: both are open
        (AUCKLAND_OR_CHATHAM, "2026-11-20T03:20:00Z", "2026-11-22T20:00:00Z"),  # Chatham has closed
        (FICTION, "2026-11-20T12:00:00Z", "2026-11-20T14:00:00Z"),  # no region: the organization's zone
        (TOLL_FREE, "2026-11-20T12:00:00Z", "2026-11-20T14:00:00Z"),  # never open in all its zones: the organization's
    ],
)
def test_calling_hours_follow_the_numbers_time_zone(number: str, moment: str, opens: str) -> None:
    clock = CallingClock(OFFICE, home="America/New_York", moment=datetime.fromisoformat(moment))
    assert clock.opens(number) == datetime.fromisoformat(opens)


def test_calling_hours_may_cross_midnight() -> None:
    hours = CallingHours(start="22:00", end="02:00", days=("fri",))
    for moment, opens in (
        ("2026-11-21T01:59:00Z", "2026-11-21T01:59:00Z"),
        ("2026-11-21T02:00:00Z", "2026-11-27T22:00:00Z"),
    ):
        assert CallingClock(hours, home="UTC", moment=datetime.fromisoformat(moment)).opens(
            LONDON
        ) == datetime.fromisoformat(opens)


def test_campaigns_without_calling_hours_may_dial_at_any_time() -> None:
    moment = datetime.fromisoformat("2026-11-20T03:00:00Z")
    assert CallingClock(None, home="UTC", moment=moment).opens(LONDON) == moment
