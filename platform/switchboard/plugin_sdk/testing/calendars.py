"""The contract of capability `calendar`."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from switchboard.plugin_sdk.calendars import (
    BusyTime,
    CalendarEvent,
    CalendarProvider,
    EventChanged,
    EventDraft,
    OAuthCalendarProvider,
)
from switchboard.plugin_sdk.callbacks import CallbackRequest, InvalidCallback
from switchboard.plugin_sdk.provider import ProviderSettings
from switchboard.plugin_sdk.testing.contract import ProviderContract

AnyCalendar = TypeVar("AnyCalendar", bound=CalendarProvider[ProviderSettings])
AnyOAuthCalendar = TypeVar("AnyOAuthCalendar", bound=OAuthCalendarProvider[ProviderSettings])
ZONE: Final = "Europe/Berlin"
HOUR: Final = timedelta(hours=1)


class CalendarContract(ProviderContract[AnyCalendar]):
    """Rules of every calendar. Override `provider`, whose `account` is set: the platform sets it before `open()`.

    Events of an hour are written to the first calendar, on a day of the next two years, and canceled after each test.
    Other events may be there.
    """

    async def use(self, provider: AnyCalendar) -> None:
        """List the calendars, as the platform does when a user connects one."""
        await provider.list_calendars()

    @pytest.fixture
    def noon(self) -> datetime:
        """A moment in the next two years."""
        today = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
        return today + timedelta(days=random.randrange(30, 700))  # noqa: S311  tests of one account at once

    @pytest_asyncio.fixture
    async def calendar_id(self, open_provider: AnyCalendar) -> str:
        """The calendar in which events are written."""
        return (await open_provider.list_calendars())[0].id

    @pytest_asyncio.fixture
    async def draft(self, open_provider: AnyCalendar, calendar_id: str, noon: datetime) -> AsyncIterator[EventDraft]:
        """An event of an hour, which is canceled after the test."""
        draft = EventDraft(uuid4(), noon, noon + HOUR, ZONE, "Visit of Ada")
        yield draft
        if (event := await open_provider.find_event(calendar_id, draft.key)) is not None:
            await open_provider.cancel_event(calendar_id, event)

    async def list_own(
        self, provider: AnyCalendar, calendar_id: str, key: UUID, starts_at: datetime, ends_at: datetime
    ) -> list[tuple[datetime, datetime]]:
        """List the busy times of one event between two moments."""
        found: Sequence[BusyTime] = await provider.list_busy(calendar_id, starts_at, ends_at, time_zone=ZONE)
        return [(busy.starts_at, busy.ends_at) for busy in found if busy.event_key == key]

    async def list_day(
        self, provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> list[tuple[datetime, datetime]]:
        """List the busy times of a draft's event around its day."""
        begin = draft.starts_at - timedelta(hours=20)
        return await self.list_own(provider, calendar_id, draft.key, begin, begin + timedelta(days=2))

    async def test_its_account_refuses_unknown_keys(self, provider: AnyCalendar) -> None:
        """A typo in a request that connects a calendar must be reported.

        If this fails, make `Account` a subclass of `ProviderSettings`, and the provider's `account` one of `Account`.
        """
        assert issubclass(provider.Account, ProviderSettings)
        assert provider.Account.model_config.get("extra") == "forbid"
        assert isinstance(provider.account, provider.Account)

    async def test_its_account_never_prints_a_secret(self, provider: AnyCalendar) -> None:
        """Accounts may end up in logs. If this fails, make every credential a `SecretStr`."""
        words = ("key", "secret", "token", "password")
        for name, field in provider.Account.model_fields.items():
            if any(word in name for word in words):
                assert "Secret" in str(field.annotation), f"{name} should be a SecretStr"

    async def test_the_first_calendar_can_be_written(self, open_provider: AnyCalendar) -> None:
        """The platform proposes the first calendar.

        If this fails, leave out calendars without events (tasks, say), and put one that can be written first.
        """
        calendars = await open_provider.list_calendars()
        assert calendars[0].is_writable
        assert all(calendar.id and calendar.name for calendar in calendars)
        assert len({calendar.id for calendar in calendars}) == len(calendars)

    async def test_a_created_event_is_busy_with_its_key(
        self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> None:
        """The platform takes the time of its own event for free when it moves that event.

        If this fails, write the key into the event, and read it from there.
        """
        event = await open_provider.create_event(calendar_id, draft)
        assert (event.key, event.starts_at, event.ends_at) == (draft.key, draft.starts_at, draft.ends_at)
        assert event.id
        assert await self.list_day(open_provider, calendar_id, draft) == [(draft.starts_at, draft.ends_at)]

    async def test_times_are_in_utc(self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft) -> None:
        """If this fails, convert each time to `datetime.UTC`, whatever zone the calendar has."""
        event = await open_provider.create_event(calendar_id, draft)
        found = await open_provider.list_busy(
            calendar_id, draft.starts_at - HOUR, draft.ends_at + HOUR, time_zone="Asia/Kathmandu"
        )
        moments = [event.starts_at, event.ends_at, *(each for busy in found for each in (busy.starts_at, busy.ends_at))]
        assert {moment.utcoffset() for moment in moments} == {timedelta(0)}
        assert (draft.starts_at, draft.ends_at, draft.key) in [
            (busy.starts_at, busy.ends_at, busy.event_key) for busy in found
        ]

    async def test_an_event_is_found_by_its_key(
        self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> None:
        """The platform looks for an event whose creation was interrupted.

        If this fails, return from `create_event` only when the event can be found, with the same version.
        """
        event = await open_provider.create_event(calendar_id, draft)
        assert await open_provider.find_event(calendar_id, draft.key) == event

    async def test_an_unknown_key_finds_nothing(self, open_provider: AnyCalendar, calendar_id: str) -> None:
        """If this fails, return None for an event that does not exist, in place of an error."""
        assert await open_provider.find_event(calendar_id, uuid4()) is None

    async def test_a_repeated_creation_writes_nothing(
        self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> None:
        """Jobs run again after a crash, and the person may have been told the first time.

        If this fails, return the event that has the key, with its own times.
        """
        event = await open_provider.create_event(calendar_id, draft)
        later = EventDraft(draft.key, draft.starts_at + HOUR, draft.ends_at + HOUR, ZONE, "Another title")
        assert await open_provider.create_event(calendar_id, later) == event
        assert await self.list_day(open_provider, calendar_id, draft) == [(draft.starts_at, draft.ends_at)]

    async def test_concurrent_creations_write_one_event(
        self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> None:
        """If this fails, let the calendar itself decide, by an id of the key or by a condition of the request."""
        events = await asyncio.gather(*(open_provider.create_event(calendar_id, draft) for _ in range(4)))
        assert {event.id for event in events} == {events[0].id}
        assert await self.list_day(open_provider, calendar_id, draft) == [(draft.starts_at, draft.ends_at)]

    async def test_a_moved_event_is_the_same_event_at_another_time(
        self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> None:
        """If this fails, change the times of the event, and return the version that the change has made."""
        event = await open_provider.create_event(calendar_id, draft)
        ends_at = draft.ends_at + (HOUR if open_provider.has_fixed_length else 2 * HOUR)
        moved = await open_provider.move_event(calendar_id, event, draft.starts_at + HOUR, ends_at)
        assert (moved.id, moved.key) == (event.id, event.key)
        assert moved.version != event.version or not event.version
        assert (moved.starts_at, moved.ends_at) == (draft.starts_at + HOUR, ends_at)
        assert await open_provider.find_event(calendar_id, draft.key) == moved
        assert await self.list_day(open_provider, calendar_id, draft) == [(moved.starts_at, moved.ends_at)]

    async def test_another_version_is_not_moved(
        self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> None:
        """A person's change in the calendar is never overwritten.

        If this fails, make the request conditional on the version (`If-Match`), and raise `EventChanged`.
        """
        event = await open_provider.create_event(calendar_id, draft)
        if not event.version:
            pytest.skip("the calendar has no versions")
        moved = await open_provider.move_event(calendar_id, event, draft.starts_at + HOUR, draft.ends_at + HOUR)
        with pytest.raises(EventChanged):
            await open_provider.move_event(calendar_id, event, draft.starts_at, draft.ends_at)
        assert await self.list_day(open_provider, calendar_id, draft) == [(moved.starts_at, moved.ends_at)]

    async def test_a_canceled_event_cannot_be_moved(
        self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> None:
        """If this fails, raise `EventChanged` for an event that is gone: a move must not create it again."""
        event = await open_provider.create_event(calendar_id, draft)
        await open_provider.cancel_event(calendar_id, event)
        with pytest.raises(EventChanged):
            await open_provider.move_event(calendar_id, event, draft.starts_at + HOUR, draft.ends_at + HOUR)
        assert await self.list_day(open_provider, calendar_id, draft) == []

    async def test_a_canceled_event_frees_its_time(
        self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> None:
        """If this fails, delete the event, and ignore that it is gone already."""
        event = await open_provider.create_event(calendar_id, draft)
        for _ in range(2):
            await open_provider.cancel_event(calendar_id, event)
        assert await self.list_day(open_provider, calendar_id, draft) == []
        assert await open_provider.find_event(calendar_id, draft.key) is None

    async def test_a_new_event_is_a_change(
        self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> None:
        """The platform looks for what people have changed only if something has changed.

        If this fails, return True from `find_changes` whenever the provider cannot tell.
        """
        first = await open_provider.find_changes(calendar_id, "")
        assert first.has_changed
        await open_provider.create_event(calendar_id, draft)
        assert (await open_provider.find_changes(calendar_id, first.cursor)).has_changed

    async def test_an_unknown_cursor_is_a_change(self, open_provider: AnyCalendar, calendar_id: str) -> None:
        """Cursors expire. If this fails, return True and a new cursor for one that the vendor does not know."""
        assert (await open_provider.find_changes(calendar_id, "a cursor of long ago")).has_changed

    async def test_an_event_is_canceled_whatever_version_it_has(
        self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> None:
        """A canceled appointment must not stay in the calendar because somebody has added a note.

        If this fails, delete without a condition.
        """
        event = await open_provider.create_event(calendar_id, draft)
        await open_provider.move_event(calendar_id, event, draft.starts_at + HOUR, draft.ends_at + HOUR)
        await open_provider.cancel_event(calendar_id, event)
        assert await self.list_day(open_provider, calendar_id, draft) == []

    async def test_busy_times_touch_the_window(
        self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> None:
        """If this fails, list each period that overlaps the window, whole or cut at its edges, and no other.

        A period that ends when the window starts, or starts when it ends, does not overlap it.
        """
        await open_provider.create_event(calendar_id, draft)
        begin, end, half = draft.starts_at, draft.ends_at, HOUR / 2
        for window in ((begin - HOUR, begin + half), (begin + half, end + HOUR), (begin + half / 2, end - half / 2)):
            ((starts_at, ends_at),) = await self.list_own(open_provider, calendar_id, draft.key, *window)
            assert begin <= starts_at <= max(begin, window[0])
            assert min(end, window[1]) <= ends_at <= end
        for window in ((begin - HOUR, begin), (end, end + HOUR), (begin - 2 * HOUR, begin - HOUR)):
            assert await self.list_own(open_provider, calendar_id, draft.key, *window) == []

    async def test_any_text_can_be_written(
        self, open_provider: AnyCalendar, calendar_id: str, draft: EventDraft
    ) -> None:
        """Titles and descriptions repeat what callers have said.

        If this fails, escape the text as the calendar's format demands: quotes, separators, line breaks, and letters of
        all scripts.
        """
        text = "Größe \"XL\"; a, b\\n 'c'\nEND:VEVENT\nDTSTART:19700101T000000Z\n<b>&amp;</b> 北 🙂 " + "ä" * 300
        written = EventDraft(draft.key, draft.starts_at, draft.ends_at, ZONE, text.replace("\n", " "), text)
        event = await open_provider.create_event(calendar_id, written)
        assert await open_provider.find_event(calendar_id, draft.key) == event
        assert await self.list_day(open_provider, calendar_id, draft) == [(draft.starts_at, draft.ends_at)]
        assert await self.read_text(open_provider, calendar_id, event) in (None, (written.title, written.description))

    async def test_it_has_changes_reported_or_says_that_it_cannot(
        self, open_provider: AnyCalendar, calendar_id: str
    ) -> None:
        """The platform renews a watch when half of its time has passed, and ends it when the calendar is removed.

        If this fails, return the vendor's promise with its end, also for a `current` watch that has ended, and ignore
        the end of one that has ended. A calendar whose vendor reports no changes does not override `watch`.
        """
        address, secret = "https://switchboard.example.com/calendars/acme/1/2", "s" * 128
        first = await open_provider.watch(calendar_id, address, secret)
        if first is None:
            with pytest.raises(InvalidCallback):
                open_provider.read_report(CallbackRequest("POST", address, "", {}, b""))
            return
        for current in (first, await open_provider.watch(calendar_id, address, secret, current=first.id)):
            assert current is not None
            assert 0 < len(current.id) <= 1000
            assert current.expires_at > datetime.now(UTC) + HOUR
            await open_provider.end_watch(current.id)
            await open_provider.end_watch(current.id)
        renewed = await open_provider.watch(calendar_id, address, secret, current=first.id)
        assert renewed is not None
        await open_provider.end_watch(renewed.id)

    async def read_text(self, provider: AnyCalendar, calendar_id: str, event: CalendarEvent) -> tuple[str, str] | None:
        """Return the title and description that an event has at the vendor; None if the test cannot read them. Override
        it with a request to your server of the tests.
        """
        return None


class OAuthCalendarContract(CalendarContract[AnyOAuthCalendar]):
    """Rules of a calendar whose accounts are connected by OAuth."""

    async def test_it_describes_where_accounts_are_connected(self, provider: AnyOAuthCalendar) -> None:
        """The dashboard sends users there.

        If this fails, return the addresses that the vendor publishes, and the operator's registration of `Settings`.
        """
        service = provider.describe_oauth()
        assert service.client_id
        assert service.client_secret.get_secret_value()
        assert service.scopes
        for url in filter(None, (service.authorization_url, service.token_url, service.revocation_url)):
            assert url.startswith(("https://", "http://127.0.0.1:", "http://localhost:"))

    async def test_its_account_needs_only_the_token(self, provider: AnyOAuthCalendar) -> None:
        """The dashboard asks a user for consent and for nothing else.

        If this fails, give every other field of `Account` a default.
        """
        required = {name for name, field in provider.Account.model_fields.items() if field.is_required()}
        assert required == {"access_token"}
