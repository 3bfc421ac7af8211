"""The contract of a calendar, and tests of this plugin's own."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from acme_vendor import Acme, create_settings
from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.testing import CalendarContract
from switchboard_acme import AcmeAccount, AcmeCalendar
from switchboard_acme.client import AcmeSettings


def create_calendar(settings: AcmeSettings) -> AcmeCalendar:
    provider = AcmeCalendar(settings)
    provider.account = AcmeAccount(user="ada")
    return provider


class TestAcmeCalendar(CalendarContract[AcmeCalendar]):
    @pytest.fixture
    def provider(self, settings: AcmeSettings) -> AcmeCalendar:
        return create_calendar(settings)

    @pytest.fixture
    def create_at(self) -> Callable[[str], AcmeCalendar]:
        return lambda address: create_calendar(create_settings(address))

    async def test_a_calendar_out_of_order_is_a_failure(self, open_provider: AcmeCalendar, acme: Acme) -> None:
        acme.fault = 503
        with pytest.raises(ProviderError, match="out of order"):
            await open_provider.find_event("ada", uuid4())
