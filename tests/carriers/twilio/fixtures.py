"""Fixtures: a Twilio server on the wire, and the plugin connected to it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from pydantic import HttpUrl, SecretStr
from switchboard.plugin_sdk.testing.vendors import VENDORS_ONLY
from switchboard_telephony_twilio.provider import TwilioTelephony
from switchboard_telephony_twilio.settings import TwilioSettings

from tests.carriers.twilio.rest import serve_twilio
from tests.carriers.twilio.server import TwilioServer, new_sid
from tests.carriers.twilio.wire import Number
from tests.carriers.vendor import OURS


@pytest_asyncio.fixture
async def twilio() -> AsyncIterator[TwilioServer]:
    """An account with one number."""
    async with serve_twilio() as server:
        server.numbers[OURS] = Number(new_sid("PN"), OURS)
        yield server


@pytest_asyncio.fixture
async def carrier(twilio: TwilioServer) -> AsyncIterator[TwilioTelephony]:
    """The opened plugin."""
    settings = TwilioSettings(
        account_sid=twilio.account_sid, auth_token=SecretStr(twilio.auth_token), base_url=HttpUrl(twilio.address)
    )
    provider = TwilioTelephony(settings)
    provider.network_policy = VENDORS_ONLY
    await provider.open()
    yield provider
    await provider.close()


@pytest.fixture
def short_pauses() -> None:
    """Shorten the pauses between attempts, and the deadlines."""
