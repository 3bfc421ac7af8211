"""Calendars of an account: from the address of a server, a principal, a home, or a calendar (RFC 4791, RFC 6764)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from switchboard.plugin_sdk import ProviderError, RemoteCalendar
from yarl import URL

from switchboard_calendar import dav
from switchboard_calendar.dav import CALDAV, DAV, Resource
from switchboard_calendar.event_text import find_zone_name
from switchboard_calendar.transport import NOT_FOUND, DavClient

WELL_KNOWN: Final = "/.well-known/caldav"
MAX_HOMES: Final = 5
_PROPERTIES: Final = (
    dav.RESOURCE_TYPE, dav.DISPLAY_NAME, dav.PRINCIPAL, dav.PRIVILEGES, dav.HOMES, dav.ADDRESSES, dav.COMPONENTS,
    dav.TIME_ZONE, dav.TIME_ZONE_ID,
)  # fmt: skip
_WRITES: Final = frozenset((f"{DAV}all", f"{DAV}write", f"{DAV}write-content", f"{DAV}bind"))
_ELSEWHERE: Final = frozenset((200, 204, 400, 403, NOT_FOUND, 405, 406, 410, 501))
"""Statuses of an address that does not speak CalDAV: other pages of a server whose calendars are below another path."""
_MAILTO: Final = "mailto:"


@dataclass(frozen=True, slots=True)
class Place:
    """A resource of the server at its address."""

    url: URL
    resource: Resource

    @property
    def is_calendar(self) -> bool:
        """True for a calendar that can have events."""
        components = self.resource.list_names(dav.COMPONENTS)
        is_calendar = f"{CALDAV}calendar" in self.resource.list_children(dav.RESOURCE_TYPE)
        return is_calendar and (not components or "VEVENT" in components)

    def describe(self) -> RemoteCalendar:
        """Return the calendar."""
        privileges = self.resource.list_children(dav.PRIVILEGES)
        name = self.resource.get_text(dav.DISPLAY_NAME) or self.url.path.rstrip("/").rpartition("/")[2]
        zone = find_zone_name(self.resource.get_text(dav.TIME_ZONE_ID), self.resource.get_text(dav.TIME_ZONE))
        return RemoteCalendar(self.url.raw_path, name, zone, not privileges or bool(_WRITES & set(privileges)))


@dataclass(frozen=True, slots=True)
class Discovery:
    """Calendars of an account, and the email addresses by which invitations name its user."""

    calendars: Sequence[RemoteCalendar]
    addresses: frozenset[str]


async def discover(client: DavClient) -> Discovery:
    """Find the calendars of an account. Raises `ProviderError`."""
    start = await _find_start(client)
    principal = start if start.resource.list_hrefs(dav.HOMES) else await _find_principal(client, start)
    addresses = _list_addresses(principal)
    if start.is_calendar:
        return Discovery([start.describe()], addresses)
    homes = [] if principal is None else principal.resource.list_hrefs(dav.HOMES)
    folders = [] if principal is None else [client.resolve(href, principal.url) for href in homes[:MAX_HOMES]]
    # The address of a home is preferred to the homes of the user. The root of a server is not a home.
    is_root = start.url.path in ("", "/") or start is principal
    folders = [*folders, start.url] if is_root else [start.url, *folders]
    for folder in folders:
        if calendars := await _list_calendars(client, folder):
            return Discovery(calendars, addresses)
    raise ProviderError(
        "there is no calendar at this address; give that of a calendar, or of the server",
        code="no_calendar",
        retryable=False,
    )


async def describe_calendar(client: DavClient, url: URL) -> Discovery:
    """Describe one calendar. Raises `ProviderError`."""
    place = await _describe(client, url)
    if place is None or not place.is_calendar:
        raise ProviderError(
            "the calendar was deleted, or the account has no right to it any more", code="no_calendar", retryable=False
        )
    return Discovery([place.describe()], _list_addresses(await _find_principal(client, place)))


async def _find_start(client: DavClient) -> Place:
    start = await _describe(client, client.url)
    if start is None or not (start.is_calendar or start.resource.properties.keys() & {dav.PRINCIPAL, dav.HOMES}):
        start = await _describe(client, client.resolve(WELL_KNOWN)) or start
    if start is None:
        raise ProviderError("there is no CalDAV server at this address; check it", code="404", retryable=False)
    return start


async def _find_principal(client: DavClient, place: Place) -> Place | None:
    hrefs = place.resource.list_hrefs(dav.PRINCIPAL)
    return await _describe(client, client.resolve(hrefs[0], place.url)) if hrefs else None


def _list_addresses(principal: Place | None) -> frozenset[str]:
    hrefs = [] if principal is None else principal.resource.list_hrefs(dav.ADDRESSES)
    found = [href[len(_MAILTO) :].lower() for href in hrefs if href.lower().startswith(_MAILTO)]
    return frozenset(found)


async def _list_calendars(client: DavClient, folder: URL) -> list[RemoteCalendar]:
    """List the calendars in a folder, those that can be written first."""
    places = await _list_places(client, folder, depth="1")
    found = [place.describe() for place in places or () if place.is_calendar]
    return sorted(found, key=lambda calendar: not calendar.is_writable)


async def _describe(client: DavClient, url: URL) -> Place | None:
    """Return a resource; None if the server has none there, or does not know CalDAV."""
    places = await _list_places(client, url, depth="0")
    return places[0] if places else None


async def _list_places(client: DavClient, url: URL, *, depth: str) -> list[Place] | None:
    headers = {"Depth": depth, "Content-Type": "application/xml; charset=utf-8"}
    response = await client.send("PROPFIND", url, headers=headers, content=dav.build_propfind(_PROPERTIES))
    if response.status in _ELSEWHERE:
        return None
    resources = await asyncio.to_thread(response.parse_resources)
    return [Place(client.resolve(each.href, response.url), each) for each in resources if each.status < 300]
