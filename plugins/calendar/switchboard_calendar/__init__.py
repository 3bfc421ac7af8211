"""Calendars over CalDAV, at Google, at Microsoft 365, and at cal.com: their busy times, and events in them."""

from switchboard.plugin_sdk import CalendarProvider, ProviderSettings, hookimpl

from switchboard_calendar.calcom import CalcomCalendar
from switchboard_calendar.google import GoogleCalendar
from switchboard_calendar.microsoft import MicrosoftCalendar
from switchboard_calendar.provider import CalDAVCalendar

PLUGIN_API_VERSION = 1


@hookimpl
def calendar_providers() -> list[type[CalendarProvider[ProviderSettings]]]:
    return [CalDAVCalendar, GoogleCalendar, MicrosoftCalendar, CalcomCalendar]
