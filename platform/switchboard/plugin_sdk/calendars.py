"""Capability `calendar`: busy times and events of a connected calendar."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from pydantic import Field, SecretStr

from switchboard.plugin_sdk.callbacks import CallbackReply, CallbackRequest, InvalidCallback
from switchboard.plugin_sdk.provider import Provider, ProviderError, ProviderSettings, SettingsT_co


@dataclass(frozen=True, slots=True)
class RemoteCalendar:
    """A calendar of an account.

    `id` is the provider's own, such as the path of a CalDAV collection. `time_zone` is an IANA name, None if the
    provider does not say.
    """

    id: str
    name: str
    time_zone: str | None = None
    is_writable: bool = True


@dataclass(frozen=True, slots=True)
class BusyTime:
    """A period in which somebody is busy, in UTC.

    `event_key` is the key of an event that the platform has written. It may also be the id of another event, if that is
    a UUID: a key that the platform has not given means nothing.
    """

    starts_at: datetime
    ends_at: datetime
    event_key: UUID | None = None


@dataclass(frozen=True, slots=True)
class EventDraft:
    """An event to write.

    `key` identifies the event for good: of two events with one key, the calendar has one. `starts_at` and `ends_at` are
    in UTC; `time_zone` is the IANA zone in which people read them. `attendee_name` and `attendee_phone` (E.164) are
    those of the person who comes, for a calendar that has attendees; empty if they are not known.
    """

    key: UUID
    starts_at: datetime
    ends_at: datetime
    time_zone: str
    title: str
    description: str = ""
    attendee_name: str = ""
    attendee_phone: str = ""


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """An event that the platform has written, as the calendar has it now.

    `id` is the provider's own. `version` changes with each change of the event (an ETag, say); empty if the provider
    has none. `starts_at` and `ends_at` are in UTC.
    """

    key: UUID
    id: str
    version: str
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class CalendarChanges:
    """Result of a look for changes: `has_changed` if events of the calendar may have changed since a cursor.

    `cursor` is the one to look with the next time, the provider's own, such as a sync token (RFC 6578); at most 2 000
    characters.
    """

    has_changed: bool
    cursor: str


@dataclass(frozen=True, slots=True)
class CalendarWatch:
    """A vendor's promise to report changes of a calendar until `expires_at` (UTC).

    `id` is the provider's own, with all that is needed to renew and to end the watch; at most 1 000 characters.
    """

    id: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """A request of a vendor to the address of a watch.

    `secret` is the one that the request shows; None for a request that reports no change, such as one that only checks
    the address. `reply` is the response to a request that is accepted; one with a wrong secret is answered with 403.
    """

    secret: str | None
    reply: CallbackReply


class AccountRefused(ProviderError):
    """The provider refuses the account: its password was changed, say, or its grant was revoked.

    The platform marks the calendar as disconnected, and asks it no more until a user connects it again.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message, code="account_refused", retryable=False)


class EventChanged(ProviderError):
    """The event is not the given version any more, or it is gone: somebody has changed or deleted it."""

    def __init__(self, message: str = "the event was changed in the calendar") -> None:
        super().__init__(message, code="event_changed", retryable=False)


class TimeTaken(ProviderError):
    """The provider does not take an event at this time, because the time is not free."""

    def __init__(self, message: str = "the time is not free any more") -> None:
        super().__init__(message, code="time_taken", retryable=False)


class CalendarProvider(Provider[SettingsT_co]):
    """Reads busy times and writes events of one account.

    An instance serves one connected calendar, several requests at a time, and keeps its connections between them: the
    platform goes on to use it for ten minutes, unless a minute passes without a request. `Settings` has what the
    operator sets for an organization, such as the registration of an application; an organization may use a provider
    whose settings are all optional without configuring it. `Account` has what a user gives to connect a calendar, such
    as its address and password. The platform sets `account` before `open()`. Addresses in `Account` come from outside:
    the provider reaches them by a client that checks `network_policy`.
    """

    Account: ClassVar[type[ProviderSettings]] = ProviderSettings
    account: ProviderSettings = ProviderSettings()
    has_fixed_length: ClassVar[bool] = False
    """Whether the calendar itself decides how long an event lasts. `create_event` and `move_event` then raise
    `ProviderError` for another length.
    """

    @abstractmethod
    async def list_calendars(self) -> Sequence[RemoteCalendar]:
        """List the calendars of the account that can have events, the one to use first. Raises `ProviderError`."""

    @abstractmethod
    async def list_busy(
        self, calendar_id: str, starts_at: datetime, ends_at: datetime, *, time_zone: str
    ) -> Sequence[BusyTime]:
        """List the periods between two moments (UTC) in which the calendar is busy, in any order.

        Each occurrence of a recurring event is a period, unless it is canceled or leaves its time free. An event that
        lasts all day is busy from midnight to midnight. `time_zone` is the IANA zone of days and of times that have no
        zone of their own, if the calendar has none. Raises `ProviderError`: a calendar that cannot be read as a whole
        is never free.
        """

    async def find_changes(self, calendar_id: str, cursor: str) -> CalendarChanges:
        """Return whether events may have changed since a cursor, which is empty the first time.

        True if the provider cannot tell, and for a cursor that it does not know any more: the platform then compares
        its events with `list_busy`. A calendar that cannot tell at all does not override this. Raises `ProviderError`.
        """
        return CalendarChanges(True, "")

    async def watch(
        self, calendar_id: str, address: str, secret: str, *, current: str | None = None
    ) -> CalendarWatch | None:
        """Ask the vendor to report changes of a calendar to an address (https), and return its promise; None if it
        reports none.

        Each report shows `secret`, which has at most 128 characters. `current` is the id of the watch that this one
        renews or replaces, and which may have ended. The vendor may ask the address at once. Raises `ProviderError`.
        """
        return None

    async def end_watch(self, watch_id: str) -> None:
        """Ask the vendor to report no more changes; no effect if the watch has ended. Raises `ProviderError`."""

    def read_report(self, request: CallbackRequest) -> ChangeReport:
        """Translate a request to the address of a watch. The provider is not open, and has no account.

        Anybody can send such a request: the platform compares the secret. Raises `InvalidCallback`.
        """
        raise InvalidCallback("nobody was asked to report changes")

    @abstractmethod
    async def create_event(self, calendar_id: str, draft: EventDraft) -> CalendarEvent:
        """Write an event, and return it.

        If the calendar has an event with the draft's key, it is returned unchanged: a repeated request writes nothing.
        Raises `EventChanged` if that event is canceled and the calendar does not take another one with the key,
        `TimeTaken` if the provider itself refuses the time, `OutcomeUnknown` if it may have written the event
        without confirming it, and `ProviderError`.
        """

    @abstractmethod
    async def find_event(self, calendar_id: str, key: UUID) -> CalendarEvent | None:
        """Return the event that was written with a key; None if there is none, or if it is canceled.

        Raises `ProviderError`.
        """

    @abstractmethod
    async def move_event(
        self, calendar_id: str, event: CalendarEvent, starts_at: datetime, ends_at: datetime
    ) -> CalendarEvent:
        """Move an event to another time (UTC), and return its new version. Everything else of the event stays.

        Raises `EventChanged` if the calendar has another version of the event, or no such event, `TimeTaken`,
        `OutcomeUnknown`, and `ProviderError`.
        """

    @abstractmethod
    async def cancel_event(self, calendar_id: str, event: CalendarEvent) -> None:
        """Cancel an event, whatever version it has by now; no effect if it is gone.

        Raises `OutcomeUnknown` and `ProviderError`.
        """


@dataclass(frozen=True, slots=True)
class OAuthService:
    """Addresses at which a vendor's accounts are connected, by the authorization code flow (RFC 6749, section 4.1) with
    PKCE (RFC 7636), and the operator's registration there.

    `authorization_parameters` are added to the request for authorization, such as `access_type` at Google.
    `revocation_url` is the endpoint of RFC 7009, empty if the vendor has none.
    """

    authorization_url: str
    token_url: str
    client_id: str
    client_secret: SecretStr
    scopes: tuple[str, ...]
    authorization_parameters: Mapping[str, str] = field(default_factory=dict)
    revocation_url: str = ""


class OAuthAccount(ProviderSettings):
    """An account whose tokens the platform gets, keeps encrypted, refreshes, and revokes."""

    access_token: SecretStr = Field(description="Access token of the account, which the platform refreshes.")


class OAuthCalendarProvider(CalendarProvider[SettingsT_co]):
    """A provider whose accounts are connected by OAuth, by a user in the dashboard.

    `Account` has the account's access token, with at least a minute left when the provider is opened, and no other
    required field.
    """

    Account: ClassVar[type[OAuthAccount]] = OAuthAccount

    @abstractmethod
    def describe_oauth(self) -> OAuthService:
        """Return where accounts are connected, by the provider's settings. The provider need not be open.

        Raises `ProviderError` for settings that do not name the operator's registration.
        """
