"""Calendars over CalDAV, at cal.com, and at Microsoft 365: their busy times, and events in them."""

from switchboard.plugin_sdk import CalendarProvider, ProviderSettings, hookimpl

from switchboard_calendar.calcom import CalcomCalendar
from switchboard_calendar.microsoft import MicrosoftCalendar
from switchboard_calendar.provider import CalDAVCalendar

PLUGIN_API_VERSION = 1


@hookimpl
def calendar_providers() -> list[type[CalendarProvider[ProviderSettings]]]:
    return [CalDAVCalendar, CalcomCalendar, MicrosoftCalendar]
