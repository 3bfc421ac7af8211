"""Calendar `calcom`: the bookings of one event type at cal.com, over its API v2."""

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final
from uuid import UUID

from pydantic import AfterValidator, Field, SecretStr
from switchboard.plugin_sdk import (
    BusyTime,
    CalendarChanges,
    CalendarEvent,
    CalendarProvider,
    EventChanged,
    EventDraft,
    JsonObject,
    OutcomeUnknown,
    ProviderError,
    ProviderSettings,
    RemoteCalendar,
    TimeTaken,
)

from switchboard_calendar.addresses import check_address
from switchboard_calendar.calcom_client import (
    BOOKINGS_VERSION,
    EVENT_TYPES_VERSION,
    KEY_FIELD,
    SLOTS_VERSION,
    CalcomBooking,
    CalcomBookingPage,
    CalcomClient,
    CalcomEnvelope,
    CalcomEventType,
    CalcomSlot,
    CalcomUpdate,
    CalcomUpdatePage,
)
from switchboard_calendar.transport import VendorRefusal, create_unreadable

PAGE_SIZE: Final = 250
"""Bookings of a page: the most that cal.com sends."""
PAGE_STEP: Final = 225
"""Bookings between the beginnings of two pages: less than a page, so that none is missed if others are canceled
meanwhile."""
MAX_PAGES: Final = 8
MAX_SLOTS: Final = 20_000
OPEN_STATUSES: Final = "upcoming,unconfirmed"
"""Statuses of bookings that have not ended; cal.com cancels and moves no others."""
ALL_STATUSES: Final = "cancelled,upcoming,recurring,past,unconfirmed"
FIRST_CHANGE: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Moment before the first booking at cal.com."""
LATE_CHANGES: Final = timedelta(minutes=2)
"""Time after which a change is visible at the latest. A booking has the moment at which it was written, which may be
before that of another one that is visible already."""
REFUSED: Final = (400, 404, 409)
_ANSWERED: Final = frozenset(("name", "email", "title", "notes", "guests", "location", "rescheduleReason"))
"""Questions of an event type that a booking answers, or that cal.com answers itself."""
_PHONES: Final = frozenset(("attendeePhoneNumber", "smsReminderNumber"))
_TAKEN: Final = ("not available", "already has booking", "can't be booked at", "in the past", "no available users")
"""Parts of the messages for a time that is not free. They are in cal.com's source only
(`apps/api/v2/src/ee/bookings/2024-08-13/services/errors.service.ts`), so its slots decide for other messages."""
_MARGIN: Final = timedelta(days=1)


class CalcomAccount(ProviderSettings):
    """Access to an event type at cal.com."""

    api_key: SecretStr = Field(max_length=1024, description="API key of the user who owns the event type.")
    event_type_id: int = Field(
        ge=1, description="Number of the event type, which its address at cal.com ends with: /event-types/123."
    )
    attendee_email: str = Field(
        max_length=320,
        pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
        description="Email address that cal.com notifies of bookings in the place of callers, who have given none.",
    )
    language: str = Field(
        "en",
        pattern=r"^[a-z]{2}(-[A-Za-z0-9]{2,3})?$",
        description="Language of cal.com's messages about bookings, such as de.",
    )
    url: Annotated[str, AfterValidator(check_address)] = Field(
        "https://api.cal.com/v2",
        max_length=2048,
        description="Address of the API, for cal.com on a server of your own.",
    )


class CalcomCalendar(CalendarProvider[ProviderSettings]):
    """An event type at cal.com.

    A time is busy unless cal.com offers it. A booking has the event's key in its metadata. A move gives a booking
    another `uid`, so the id of an event is its key, and its version is the booking's `uid`. cal.com has no idempotency
    keys: it is asked for the key before each creation, and of two concurrent ones it refuses the second, because the
    time is taken by then. So event types in which two bookings may have one time are refused.
    """

    name = "calcom"
    title = "Cal.com"
    has_fixed_length = True
    Account = CalcomAccount
    account: CalcomAccount

    def __init__(self, settings: ProviderSettings) -> None:
        super().__init__(settings)
        self._opened: CalcomClient | None = None
        self._event_type: CalcomEventType | None = None

    async def open(self) -> None:
        account = self.account
        if not isinstance(account, CalcomAccount):
            return  # an operator names the provider before a user connects a calendar
        api_key = account.api_key.get_secret_value()
        if not api_key.isascii() or not api_key.isprintable():
            raise ProviderError("an API key has letters and digits only; copy it again", retryable=False)
        self._opened = CalcomClient(account.url, api_key, self.network_policy)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    async def check(self) -> None:
        """Check the API key, and that the event type can be booked; without an account there is nothing to check."""
        if self._opened is None:
            return
        await self.list_calendars()
        await self._list_bookings({"take": "1"}, pages=1)

    async def list_calendars(self) -> Sequence[RemoteCalendar]:
        self._event_type = None
        found = await self._describe()
        _require_bookable(found)
        return [RemoteCalendar(str(found.id), found.title or str(found.id))]

    async def list_busy(
        self, calendar_id: str, starts_at: datetime, ends_at: datetime, *, time_zone: str
    ) -> Sequence[BusyTime]:
        self._require(calendar_id)
        event_type = await self._describe()
        length = timedelta(minutes=event_type.minutes)
        around = {
            "afterStart": _format(starts_at - _MARGIN),
            "beforeEnd": _format(ends_at + _MARGIN),
            "sortStart": "asc",
        }
        try:
            async with asyncio.TaskGroup() as group:
                slots = group.create_task(self._list_slots(starts_at - length, ends_at + length))
                bookings = group.create_task(self._list_bookings(around))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        ours = [
            BusyTime(max(each.start, starts_at), min(each.end, ends_at), each.key)
            for each in bookings.result()
            if each.key is not None and each.start < ends_at and each.end > starts_at
        ]
        known = [*((slot.start, slot.end) for slot in slots.result()), *((own.starts_at, own.ends_at) for own in ours)]
        return [*ours, *list_gaps(known, starts_at, ends_at)]

    async def find_changes(self, calendar_id: str, cursor: str) -> CalendarChanges:
        """Compare the bookings that were changed last with those of the last time
        (https://cal.com/docs/api-reference/v2/bookings/get-all-bookings, `cal-api-version` 2024-08-13).

        cal.com has no sync tokens. A cursor has the moment from which changes are compared, and a digest of them. What
        changes in the host's other calendars is not found.
        """
        self._require(calendar_id)
        since, digest = _parse_cursor(cursor)
        changes = await self._list_updates(since)
        if cursor and digest == _digest(changes, since):
            return CalendarChanges(False, cursor)
        moments = [each.updated_at for each in changes if each.updated_at is not None]
        if len(moments) < len(changes):
            return CalendarChanges(True, "")
        newest = max((moment.replace(microsecond=0) - LATE_CHANGES for moment in moments), default=FIRST_CHANGE)
        return CalendarChanges(True, f"{_format(newest)} {_digest(changes, newest)}")

    async def create_event(self, calendar_id: str, draft: EventDraft) -> CalendarEvent:
        """Make a booking (https://cal.com/docs/api-reference/v2/bookings/create-a-booking, `cal-api-version`
        2024-08-13).
        """
        self._require(calendar_id)
        if (found := await self.find_event(calendar_id, draft.key)) is not None:
            return found
        event_type = await self._describe()
        _require_length(event_type, draft.starts_at, draft.ends_at)
        body = self._build_booking(event_type, draft)
        try:
            answer = await self._client.write(CalcomEnvelope[CalcomBooking], BOOKINGS_VERSION, "bookings", body=body)
        except OutcomeUnknown:
            # cal.com may have made the booking and not said so: it is asked once.
            if (made := await self._find_or_none(calendar_id, draft.key)) is None:
                raise
            return made
        except VendorRefusal as refusal:
            if refusal.status not in REFUSED:
                raise
            # The time may be taken by the same event, whose creation was repeated.
            if (other := await self._find_or_none(calendar_id, draft.key)) is not None:
                return other
            if await self._is_taken(refusal, draft.starts_at):
                raise TimeTaken from refusal
            raise
        if answer.data.key is None:
            raise OutcomeUnknown(
                "cal.com's answer has no metadata, so its version is too old, or it is another booking"
            )
        if answer.data.key != draft.key:
            # cal.com returns the booking that an attendee has at the time already, and all callers are one attendee.
            raise TimeTaken
        return _build_event(draft.key, answer.data)

    async def find_event(self, calendar_id: str, key: UUID) -> CalendarEvent | None:
        """Find a booking by its key among those that have not ended."""
        self._require(calendar_id)
        found = await self._find_bookings(key)
        return _build_event(key, found[0]) if found else None

    async def move_event(
        self, calendar_id: str, event: CalendarEvent, starts_at: datetime, ends_at: datetime
    ) -> CalendarEvent:
        """Move a booking (https://cal.com/docs/api-reference/v2/bookings/reschedule-a-booking, `cal-api-version`
        2024-08-13), which replaces it by another one with the same metadata.
        """
        self._require(calendar_id)
        _require_length(await self._describe(), starts_at, ends_at)
        body: JsonObject = {"start": _format(starts_at)}
        try:
            answer = await self._client.write(
                CalcomEnvelope[CalcomBooking], BOOKINGS_VERSION, "bookings", event.version, "reschedule", body=body
            )
        except VendorRefusal as refusal:
            if refusal.status not in REFUSED:
                raise
            if not await self._is_active(event.version):
                raise EventChanged from refusal
            if await self._is_taken(refusal, starts_at, moved=event.version):
                raise TimeTaken from refusal
            raise
        if answer.data.key != event.key:
            raise OutcomeUnknown("cal.com has moved the booking, but its answer is of another booking")
        return _build_event(event.key, answer.data)

    async def cancel_event(self, calendar_id: str, event: CalendarEvent) -> None:
        """Cancel a booking (https://cal.com/docs/api-reference/v2/bookings/cancel-a-booking, `cal-api-version`
        2024-08-13), whatever `uid` it has by now.
        """
        self._require(calendar_id)
        body: JsonObject = {"cancellationReason": "Canceled by telephone"}
        for booking in await self._find_bookings(event.key):
            try:
                await self._client.write(
                    CalcomEnvelope[CalcomBooking], BOOKINGS_VERSION, "bookings", booking.uid, "cancel", body=body
                )
            except VendorRefusal as refusal:
                if refusal.status not in REFUSED or await self._is_active(booking.uid):
                    raise

    @property
    def _client(self) -> CalcomClient:
        if self._opened is None:
            raise ProviderError("connect a calendar first: there is no account", retryable=False)
        return self._opened

    def _require(self, calendar_id: str) -> None:
        if calendar_id != str(self.account.event_type_id):
            raise ProviderError("the account is for another event type; connect the calendar again", retryable=False)

    async def _describe(self) -> CalcomEventType:
        """Return the event type (https://cal.com/docs/api-reference/v2/event-types/get-an-event-type, `cal-api-version`
        2024-06-14); cal.com is asked once.
        """
        if self._event_type is None:
            client, wanted = self._client, self.account.event_type_id
            try:
                answer = await client.read(
                    CalcomEnvelope[CalcomEventType], EVENT_TYPES_VERSION, "event-types", str(wanted)
                )
            except VendorRefusal as refusal:
                if refusal.status != 404:
                    raise
                message = f"cal.com has no event type {wanted} of the API key's user; check the number and the address"
                raise ProviderError(message, code="404", retryable=False) from None
            if answer.data.id != wanted:
                raise create_unreadable("it is another event type")
            self._event_type = answer.data
        return self._event_type

    async def _list_slots(
        self, starts_at: datetime, ends_at: datetime, *, moved: str | None = None
    ) -> list[CalcomSlot]:
        """List the times that cal.com offers (https://cal.com/docs/api-reference/v2/slots, `cal-api-version`
        2024-09-04). It offers none that is more than a year away. `moved` is the `uid` of a booking whose time counts
        as free.
        """
        query = {
            "eventTypeId": str(self.account.event_type_id),
            "start": _format(starts_at),
            "end": _format(ends_at),
            "timeZone": "UTC",
            "format": "range",
        }
        if moved is not None:
            query["bookingUidToReschedule"] = moved
        answer = await self._client.read(
            CalcomEnvelope[dict[str, list[CalcomSlot]]], SLOTS_VERSION, "slots", query=query
        )
        slots = [slot for day in answer.data.values() for slot in day]
        if len(slots) > MAX_SLOTS:
            raise create_unreadable(f"it has more than {MAX_SLOTS} times")
        return slots

    async def _list_bookings(self, query: dict[str, str], *, pages: int = MAX_PAGES) -> list[CalcomBooking]:
        """List bookings of the event type that have not ended (https://cal.com/docs/api-reference/v2/bookings/
        get-all-bookings, `cal-api-version` 2024-08-13). Raises `ProviderError` if there are too many.
        """
        found: dict[str, CalcomBooking] = {}
        fixed = {"eventTypeId": str(self.account.event_type_id), "status": OPEN_STATUSES, "take": str(PAGE_SIZE)}
        for page in range(pages):
            given = {**fixed, "skip": str(page * PAGE_STEP), **query}
            answer = await self._client.read(CalcomBookingPage, BOOKINGS_VERSION, "bookings", query=given)
            found |= {booking.uid: booking for booking in answer.data if booking.is_active}
            if not answer.pagination.has_next or pages == 1:
                return list(found.values())
        raise create_unreadable(f"the event type has more than {MAX_PAGES * PAGE_STEP} open bookings")

    async def _list_updates(self, since: datetime) -> list[CalcomUpdate]:
        """List the bookings that have changed since a moment, whatever their status: a page, the newest first."""
        query = {
            "eventTypeId": str(self.account.event_type_id),
            "status": ALL_STATUSES,
            "afterUpdatedAt": _format(since),
            "sortUpdatedAt": "desc",
            "take": str(PAGE_SIZE),
        }
        return (await self._client.read(CalcomUpdatePage, BOOKINGS_VERSION, "bookings", query=query)).data

    async def _find_bookings(self, key: UUID) -> list[CalcomBooking]:
        """Find the bookings with a key: one, unless cal.com has moved a booking twice at once."""
        bookings = await self._list_bookings({"sortCreated": "desc"})
        return [booking for booking in bookings if booking.key == key]

    async def _find_or_none(self, calendar_id: str, key: UUID) -> CalendarEvent | None:
        try:
            return await self.find_event(calendar_id, key)
        except ProviderError:
            return None

    async def _is_active(self, uid: str) -> bool:
        """Return whether a booking takes its time (https://cal.com/docs/api-reference/v2/bookings/get-a-booking,
        `cal-api-version` 2024-08-13).
        """
        try:
            answer = await self._client.read(CalcomEnvelope[CalcomBooking], BOOKINGS_VERSION, "bookings", uid)
        except VendorRefusal as refusal:
            if refusal.status == 404:
                return False
            raise
        return answer.data.is_active

    async def _is_taken(self, refusal: VendorRefusal, starts_at: datetime, *, moved: str | None = None) -> bool:
        """Return whether cal.com has refused a booking because its time is not free."""
        if refusal.status == 409 or any(part in refusal.message.lower() for part in _TAKEN):
            return True
        minute = timedelta(minutes=1)
        offered = await self._list_slots(starts_at - minute, starts_at + minute, moved=moved)
        return all(slot.start != starts_at for slot in offered)

    def _build_booking(self, event_type: CalcomEventType, draft: EventDraft) -> JsonObject:
        attendee: JsonObject = {
            "name": draft.attendee_name or draft.title,
            "email": self.account.attendee_email,
            "timeZone": draft.time_zone,
            "language": self.account.language,
        }
        if draft.attendee_phone and any(field.slug in _PHONES and field.required for field in event_type.fields):
            # cal.com refuses the booking if it takes the number for invalid, and the notes have it anyway.
            attendee["phoneNumber"] = draft.attendee_phone
        body: JsonObject = {
            "start": _format(draft.starts_at),
            "eventTypeId": self.account.event_type_id,
            "attendee": attendee,
            "metadata": {KEY_FIELD: str(draft.key)},
        }
        answers: JsonObject = {"notes": draft.description} if draft.description else {}
        if any(field.slug == "title" and field.required for field in event_type.fields):
            answers["title"] = draft.title
        if answers:
            body["bookingFieldsResponses"] = answers
        return body


def list_gaps(known: Iterable[tuple[datetime, datetime]], starts_at: datetime, ends_at: datetime) -> list[BusyTime]:
    """List the parts of a window that no known period covers."""
    gaps: list[BusyTime] = []
    reached = starts_at
    for begin, end in sorted(known):
        if begin > reached:
            gaps.append(BusyTime(reached, min(begin, ends_at)))
        reached = max(reached, end)
        if reached >= ends_at:
            return gaps
    gaps.append(BusyTime(reached, ends_at))
    return gaps


def _require_bookable(event_type: CalcomEventType) -> None:
    """Raise `ProviderError` for an event type whose bookings would not be appointments."""
    unasked = [field.slug for field in event_type.fields if field.required and field.slug not in _ANSWERED | _PHONES]
    answers = ", ".join(unasked)[:200]
    obstacles = {
        "repeats its bookings; turn that off": _is_on(event_type.recurrence),
        "offers seats, so that several bookings have one time; turn that off": _is_on(event_type.seats),
        "shares its bookings among hosts; use one of a single host": event_type.scheduling in ("roundRobin", "managed"),
        "asks the host to confirm its bookings; turn that off": _is_on(event_type.confirmation),
        "takes money for its bookings; turn that off": bool(event_type.price),
        "limits the bookings of an attendee, and all callers are one; turn that off": _is_on(event_type.booker_limit),
        "verifies the attendee's email address; turn that off": bool(event_type.verifies_email),
        f"requires answers that callers are not asked for: {answers}; make them optional": bool(unasked),
    }
    for obstacle, is_there in obstacles.items():
        if is_there:
            raise ProviderError(f"the event type {obstacle} at cal.com", code="unsupported_event_type", retryable=False)


def _is_on(feature: object) -> bool:
    return not feature.get("disabled") if isinstance(feature, dict) else bool(feature)


def _require_length(event_type: CalcomEventType, starts_at: datetime, ends_at: datetime) -> None:
    if ends_at - starts_at != timedelta(minutes=event_type.minutes):
        message = (
            f"the event type's bookings last {event_type.minutes} minutes; give the appointment type the same length"
        )
        raise ProviderError(message, code="other_length", retryable=False)


def _build_event(key: UUID, booking: CalcomBooking) -> CalendarEvent:
    return CalendarEvent(key, str(key), booking.uid, booking.start, booking.end)


def _parse_cursor(cursor: str) -> tuple[datetime, str]:
    """Return the moment and the digest of a cursor; for another one, the first moment and no digest."""
    text, _, digest = cursor.partition(" ")
    try:
        since = datetime.fromisoformat(text)
    except ValueError:
        return FIRST_CHANGE, ""
    return (since, digest) if since.tzinfo is not None else (FIRST_CHANGE, "")


def _digest(changes: Iterable[CalcomUpdate], since: datetime) -> str:
    """Return a digest of the changes since a moment, in any order."""
    found = sorted(
        f"{each.uid} {each.updated_at.isoformat()}"
        for each in changes
        if each.updated_at is not None and each.updated_at >= since
    )
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _format(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"
