"""The operator's registration at a vendor of calendars, entered in the dashboard."""

import pytest
from pydantic import SecretStr
from switchboard.plugin_sdk import CalendarProvider
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.dashboard import People, Person

MICROSOFT = "/dashboard/providers/calendar/microsoft"


@pytest.fixture
async def owner(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id)


async def test_owners_enter_the_registration_but_not_the_addresses(
    people: People, owner: Person, runtime: Runtime, caller: Caller
) -> None:
    """Addresses are left to superadmins, because the secret and the tokens go there, too."""
    page = (await owner.get(MICROSOFT)).html
    assert "Application (client) ID of the registration." in page
    assert "settings.authority" not in page
    assert "settings.api_url" not in page
    fields: dict[str, str | list[str]] = {
        "settings.client_id": "00001111-aaaa-2222-bbbb-3333cccc4444",
        "settings.client_secret": "secret-of-the-registration",
        "settings.tenant_id": "contoso.onmicrosoft.com",
    }
    await owner.post(MICROSOFT, fields)
    shown = (await owner.get(MICROSOFT)).html
    assert "contoso.onmicrosoft.com" in shown
    assert "secret-of-the-registration" not in shown
    async with runtime.providers.use(caller.organization_id, CalendarProvider, "microsoft") as provider:
        settings = provider.settings.model_dump()
    assert settings["client_secret"] == SecretStr("secret-of-the-registration")
    assert settings["api_url"] == "https://graph.microsoft.com/v1.0"
    operator = await people.join(caller.organization_id, superadmin=True)
    await operator.post(f"/dashboard/organizations/{caller.organization_id}")
    assert "settings.authority" in (await operator.get(MICROSOFT)).html
