"""Calendars that speak CalDAV: their busy times, and events in them."""

from switchboard.plugin_sdk import hookimpl

from switchboard_calendar.provider import CalDAVCalendar

PLUGIN_API_VERSION = 1


@hookimpl
def calendar_providers() -> list[type[CalDAVCalendar]]:
    return [CalDAVCalendar]
