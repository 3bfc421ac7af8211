"""Watches: vendors that report changes of a calendar, so that it need not be asked each minute.

A report says that something has changed, and not what: the calendar is due to be asked at once. One that is lost costs
time only, because a watched calendar is still asked, more seldom.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final
from uuid import UUID

import structlog
from quart import Blueprint, Response

from switchboard.foundation.database import now
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.callbacks import serve_callback
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk import CallbackReply, CallbackRequest, InvalidCallback, ProviderError
from switchboard.resources.appointments.calendars import CalendarConnections, describe_failure
from switchboard.resources.appointments.models import Calendar
from switchboard.resources.appointments.queries import mark_calendar_due

logger = structlog.get_logger()
blueprint = Blueprint("calendar_reports", __name__)
WATCH_SECONDS: Final = 15.0
"""Time that a vendor has to begin or to end a watch."""
TRY_AGAIN: Final = timedelta(hours=1)
"""Until a vendor is asked once more that has failed to watch a calendar, and the shortest time between renewals."""
UNWATCHED: Final = timedelta(days=1)
"""Until a provider is asked once more that watches no calendars: a later version may."""


@dataclass(frozen=True, slots=True)
class CalendarWatches:
    """Has vendors report changes of calendars, and receives their reports."""

    settings: Settings
    keyring: KeyRing
    connections: CalendarConnections

    async def keep(self, calendar: Calendar) -> None:
        """Have a calendar's vendor report its changes, or renew the watch if half of its time has passed.

        No vendor reports to an address without https. A failure is logged, and costs nothing but time.
        """
        base = self.settings.base_url
        if not base.startswith("https:") or (calendar.watch_due_at is not None and calendar.watch_due_at > now()):
            return
        address = f"{base}/calendars/{calendar.provider}/{calendar.organization_id}/{calendar.id}"
        secret = self.keyring.encrypt("", _format_label(calendar.organization_id, calendar.id))
        watch, wait = None, UNWATCHED
        try:
            async with asyncio.timeout(WATCH_SECONDS), self.connections.open(calendar) as provider:
                if provider is not None:
                    watch = await provider.watch(calendar.remote_id, address, secret, current=calendar.watch_id or None)
        except (ProviderError, TimeoutError) as error:
            wait = TRY_AGAIN
            logger.warning("calendar is not watched", calendar_id=str(calendar.id), reason=describe_failure(error))
        async with self.connections.database.write(calendar.organization_id) as session:
            row = await session.lock(Calendar, calendar.id)
            if row is None or row.remote_id != calendar.remote_id:
                return
            row.watch_id, row.watch_due_at = "", now() + wait
            if watch is not None:
                row.watch_id, row.watch_due_at = watch.id, now() + max((watch.expires_at - now()) / 2, TRY_AGAIN)

    async def leave(self, calendar: Calendar, *, revokes: bool) -> None:
        """End the watch of a calendar that was removed, and revoke the tokens of its account. A failure is logged.

        A watch whose access token has expired ends by itself.
        """
        accounts = self.connections.accounts
        tokens = accounts.read_tokens(calendar)
        is_usable = calendar.status == "connected" and not (tokens and tokens.must_be_refreshed())
        if calendar.watch_id and is_usable:
            try:
                async with asyncio.timeout(WATCH_SECONDS), self.connections.open(calendar) as provider:
                    if provider is not None:
                        await provider.end_watch(calendar.watch_id)
            except (ProviderError, TimeoutError) as error:
                logger.warning(
                    "calendar is still watched", calendar_id=str(calendar.id), reason=describe_failure(error)
                )
        if revokes:
            await accounts.revoke(calendar)

    async def receive(
        self, provider: str, organization_id: UUID, calendar_id: UUID, given: CallbackRequest
    ) -> CallbackReply:
        """Have a calendar asked at once if a report shows the secret of its watch, and return the response.

        Raises `InvalidCallback`, and `ProviderError` for a provider that the organization cannot use.
        """
        translator = await self.connections.providers.create_calendar(organization_id, provider)
        report = translator.read_report(given)
        if report.secret is None:
            return report.reply
        try:
            self.keyring.decrypt(report.secret, _format_label(organization_id, calendar_id))
        except SecretError:
            raise InvalidCallback("the secret is not that of a watch of the calendar") from None
        async with self.connections.database.write(organization_id) as session:
            await mark_calendar_due(session, calendar_id)
        return report.reply


@blueprint.post("/calendars/<provider:provider>/<organization_id>/<calendar_id>")
@inject
async def receive_report(
    provider: str, organization_id: str, calendar_id: str, settings: Settings, watches: CalendarWatches
) -> Response:
    """Receive a vendor's report that a calendar has changed."""
    organization, calendar = parse_id(organization_id), parse_id(calendar_id)
    if organization is None or calendar is None:
        raise NotFound
    return await serve_callback(settings.base_url, partial(watches.receive, provider, organization, calendar))


def _format_label(organization_id: UUID, calendar_id: UUID) -> str:
    return f"calendar|watch|{calendar_id}|{organization_id}"
