"""Fixtures: a Telnyx server on the wire, and the plugin connected to it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY
from switchboard_telephony_telnyx.provider import TelnyxTelephony
from switchboard_telephony_telnyx.settings import TelnyxSettings

from tests.carriers.telnyx.rest import serve_telnyx
from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.telnyx.wire import Number
from tests.carriers.vendor import OURS


@pytest_asyncio.fixture
async def telnyx() -> AsyncIterator[TelnyxServer]:
    """An account with one number."""
    async with serve_telnyx() as server:
        server.numbers[OURS] = Number("1293384261075731501", OURS)
        yield server


@pytest_asyncio.fixture
async def carrier(telnyx: TelnyxServer) -> AsyncIterator[TelnyxTelephony]:
    """The opened plugin."""
    provider = TelnyxTelephony(TelnyxSettings.model_validate(telnyx.settings))
    provider.network_policy = VENDORS_ONLY
    await provider.open()
    yield provider
    await provider.close()


@pytest.fixture
def short_pauses() -> None:
    """Shorten the pauses between attempts, and the deadlines."""
