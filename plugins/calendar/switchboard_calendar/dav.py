"""WebDAV and CalDAV documents: bodies of requests, and multistatus responses (RFC 4918, RFC 4791).

The library `caldav` (3.6.0) is not used: its client opens connections of its own, which could not be bound to public
addresses, its parser without a client is intended for tests and takes what is not XML for an empty answer, and it
installs `urllib3-future`, which takes the place of `urllib3` in the environment.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from lxml import etree

DAV: Final = "{DAV:}"
CALDAV: Final = "{urn:ietf:params:xml:ns:caldav}"
NAMESPACES: Final = {"D": "DAV:", "C": "urn:ietf:params:xml:ns:caldav"}

RESOURCE_TYPE: Final = f"{DAV}resourcetype"
DISPLAY_NAME: Final = f"{DAV}displayname"
PRINCIPAL: Final = f"{DAV}current-user-principal"
PRIVILEGES: Final = f"{DAV}current-user-privilege-set"
ETAG: Final = f"{DAV}getetag"
SYNC_TOKEN: Final = f"{DAV}sync-token"
CTAG: Final = "{http://calendarserver.org/ns/}getctag"
"""Version of a whole calendar at servers without sync tokens
(https://github.com/apple/ccs-calendarserver/blob/master/doc/Extensions/caldav-ctag.txt)."""
HOMES: Final = f"{CALDAV}calendar-home-set"
ADDRESSES: Final = f"{CALDAV}calendar-user-address-set"
COMPONENTS: Final = f"{CALDAV}supported-calendar-component-set"
TIME_ZONE: Final = f"{CALDAV}calendar-timezone"
TIME_ZONE_ID: Final = f"{CALDAV}calendar-timezone-id"
CALENDAR_DATA: Final = f"{CALDAV}calendar-data"

MAX_RESOURCES: Final = 5000
"""Most resources of a response. A calendar with more events in a window is not read."""
_OK: Final = 200
_NOT_FOUND: Final = 404


class UnreadableDocument(Exception):
    """The document is not what the standards demand. The message says why."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of a multistatus response: its address, properties by name, and the status of the failed ones."""

    href: str
    status: int
    properties: Mapping[str, etree._Element]
    failed: Mapping[str, int]

    def get_text(self, name: str) -> str:
        """Return the text of a property; empty without it."""
        found = self.properties.get(name)
        return "" if found is None else (found.text or "").strip()

    def list_hrefs(self, name: str) -> list[str]:
        """List the addresses in a property."""
        found = self.properties.get(name)
        return (
            [] if found is None else [text for each in found.iter(f"{DAV}href") if (text := (each.text or "").strip())]
        )

    def list_children(self, name: str) -> list[str]:
        """List the names of the elements in a property, at any depth."""
        found = self.properties.get(name)
        return [] if found is None else [str(each.tag) for each in found.iterdescendants()]

    def list_names(self, name: str) -> list[str]:
        """List the attribute `name` of the elements in a property."""
        found = self.properties.get(name)
        return [] if found is None else [str(each.get("name", "")).upper() for each in found.iterdescendants()]


def build_propfind(names: Iterable[str]) -> bytes:
    """Build the body of a PROPFIND request for properties."""
    root = etree.Element(f"{DAV}propfind", nsmap=NAMESPACES)
    _add_properties(root, names)
    return etree.tostring(root, xml_declaration=True, encoding="utf-8")


def build_window_query(starts_at: datetime, ends_at: datetime) -> bytes:
    """Build the body of a REPORT request for the events between two moments, with their recurrences."""
    root, event = _build_query()
    moments = {"start": _format_moment(starts_at), "end": _format_moment(ends_at)}
    etree.SubElement(event, f"{CALDAV}time-range", attrib=moments)
    return etree.tostring(root, xml_declaration=True, encoding="utf-8")


def build_uid_query(key: UUID) -> bytes:
    """Build the body of a REPORT request for the event with a UID."""
    root, event = _build_query()
    condition = etree.SubElement(event, f"{CALDAV}prop-filter", attrib={"name": "UID"})
    etree.SubElement(condition, f"{CALDAV}text-match", attrib={"collation": "i;octet"}).text = str(key)
    return etree.tostring(root, xml_declaration=True, encoding="utf-8")


def parse_multistatus(body: bytes) -> list[Resource]:
    """Parse a multistatus response. Raises `UnreadableDocument`."""
    root = _parse(body)
    if root.tag != f"{DAV}multistatus":
        raise UnreadableDocument("it is not a multistatus response")
    responses = root.findall(f"{DAV}response")
    if len(responses) > MAX_RESOURCES:
        raise UnreadableDocument(f"it has more than {MAX_RESOURCES} resources")
    return [_parse_response(response) for response in responses]


def has_condition(body: bytes, name: str) -> bool:
    """Return whether the body of a refusal names a condition, such as `no-uid-conflict`."""
    try:
        return _parse(body).find(f"{CALDAV}{name}") is not None
    except UnreadableDocument:
        return False


def _build_query() -> tuple[etree._Element, etree._Element]:
    root = etree.Element(f"{CALDAV}calendar-query", nsmap=NAMESPACES)
    _add_properties(root, (ETAG, CALENDAR_DATA))
    conditions = etree.SubElement(root, f"{CALDAV}filter")
    calendar = etree.SubElement(conditions, f"{CALDAV}comp-filter", attrib={"name": "VCALENDAR"})
    return root, etree.SubElement(calendar, f"{CALDAV}comp-filter", attrib={"name": "VEVENT"})


def _add_properties(root: etree._Element, names: Iterable[str]) -> None:
    properties = etree.SubElement(root, f"{DAV}prop")
    for name in names:
        etree.SubElement(properties, name)


def _format_moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _parse(body: bytes) -> etree._Element:
    """Parse XML without its entities, document types, and external files."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, huge_tree=False,
        remove_comments=True, remove_pis=True,
    )  # fmt: skip
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        raise UnreadableDocument("it is not XML") from None
    if root.getroottree().docinfo.doctype:
        raise UnreadableDocument("it has a document type")
    return root


def _parse_response(response: etree._Element) -> Resource:
    href = (response.findtext(f"{DAV}href") or "").strip()
    if not href:
        raise UnreadableDocument("a resource has no address")
    properties: dict[str, etree._Element] = {}
    failed: dict[str, int] = {}
    for propstat in response.findall(f"{DAV}propstat"):
        status = _parse_status(propstat.findtext(f"{DAV}status"))
        for each in propstat.iterfind(f"{DAV}prop/*"):
            if status == _OK:
                properties[str(each.tag)] = each
            elif status != _NOT_FOUND:
                failed[str(each.tag)] = status
    whole = response.findtext(f"{DAV}status")
    return Resource(href, _OK if whole is None else _parse_status(whole), properties, failed)


def _parse_status(line: str | None) -> int:
    parts = (line or "").split()
    if len(parts) < 2 or not parts[1].isdecimal() or len(parts[1]) != 3:
        raise UnreadableDocument("a resource has no status")
    return int(parts[1])
