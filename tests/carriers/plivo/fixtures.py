"""Fixtures: a Plivo server on the wire, and the plugin connected to it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY
from switchboard_telephony_plivo.provider import PlivoTelephony
from switchboard_telephony_plivo.settings import PlivoSettings

from tests.carriers.plivo.rest import serve_plivo
from tests.carriers.plivo.server import PlivoServer
from tests.carriers.plivo.wire import Number
from tests.carriers.vendor import OURS


@pytest_asyncio.fixture
async def plivo() -> AsyncIterator[PlivoServer]:
    """An account with one number."""
    async with serve_plivo() as server:
        server.numbers[OURS] = Number(OURS)
        yield server


@pytest_asyncio.fixture
async def carrier(plivo: PlivoServer) -> AsyncIterator[PlivoTelephony]:
    """The opened plugin."""
    provider = PlivoTelephony(PlivoSettings.model_validate(plivo.settings))
    provider.network_policy = VENDORS_ONLY
    await provider.open()
    yield provider
    await provider.close()


@pytest.fixture
def short_pauses() -> None:
    """Shorten the pauses between attempts, and the deadlines."""
