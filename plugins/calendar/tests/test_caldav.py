"""CalDAV with real servers: the contract, discovery, and other clients' changes."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from pydantic import SecretStr
from switchboard.plugin_sdk import (
    CalendarEvent,
    EventChanged,
    EventDraft,
    NetworkPolicy,
    ProviderError,
    ProviderSettings,
)
from switchboard.plugin_sdk.testing import CalendarContract
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY
from switchboard_calendar import CalDAVCalendar
from switchboard_calendar.event_text import read_calendar
from switchboard_calendar.provider import CalDAVAccount

from tests.fixtures.caldav_servers import PASSWORD, USERNAME, CalDAVServer, run_radicale, run_xandikos

NOON = datetime(2027, 3, 3, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def create_calendar(url: str, policy: NetworkPolicy = VENDORS_ONLY, **account: str) -> CalDAVCalendar:
    given = {"username": USERNAME, **account}
    password = SecretStr(given.pop("password", PASSWORD))
    provider = CalDAVCalendar(ProviderSettings())
    provider.account = CalDAVAccount(url=url, password=password, **given)
    provider.network_policy = policy
    return provider


@pytest_asyncio.fixture(scope="session")
async def radicale(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CalDAVServer]:
    async with run_radicale(tmp_path_factory.mktemp("radicale")) as server:
        yield server


@pytest_asyncio.fixture(scope="session")
async def xandikos(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CalDAVServer]:
    async with run_xandikos(tmp_path_factory.mktemp("xandikos")) as server:
        yield server


class CalDAVContract(CalendarContract[CalDAVCalendar]):
    @pytest.fixture
    def server(self) -> CalDAVServer:
        raise NotImplementedError

    @pytest.fixture
    def provider(self, server: CalDAVServer) -> CalDAVCalendar:
        return create_calendar(server.url)

    @pytest.fixture
    def create_at(self) -> Callable[[str], CalDAVCalendar]:
        return create_calendar

    @pytest.fixture(autouse=True)
    def _read_at(self, server: CalDAVServer) -> None:
        self.server_read = server

    async def read_text(
        self, provider: CalDAVCalendar, calendar_id: str, event: CalendarEvent
    ) -> tuple[str, str] | None:
        (found,) = read_calendar(await self.server_read.get(event.id)).walk("VEVENT")
        return str(found["SUMMARY"]), str(found["DESCRIPTION"])


class TestRadicale(CalDAVContract):
    @pytest.fixture
    def server(self, radicale: CalDAVServer) -> CalDAVServer:
        return radicale


class TestXandikos(CalDAVContract):
    @pytest.fixture
    def server(self, xandikos: CalDAVServer) -> CalDAVServer:
        return xandikos
