"""The form of SIP trunks, and their check through a gateway."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Browser, Page
from prometheus_client import CollectorRegistry
from switchboard.apps.provider_accounts import AccountReader, ProviderAccounts
from switchboard.engine.providers.configuration import decrypt_secrets
from switchboard.engine.providers.editing import find_provider
from switchboard.plugin_sdk.registry import Capability
from switchboard.runtime import Runtime
from switchboard_telephony_sip.provider import SipTelephony

from tests.carriers.sip.far_end import FarEnd
from tests.carriers.sip.gateway import run_gateway
from tests.fixtures.app import Caller, LivePlatform
from tests.fixtures.dashboard import People, Person, Window, create_person, open_owner_window, sign_in_window
from tests.fixtures.free_ports import find_free_port

SIP = "/dashboard/providers/telephony/sip"
Fields = dict[str, str | list[str]]


async def read_settings(runtime: Runtime, caller: Caller) -> dict[str, Any]:
    """Return the stored settings, with the passwords in plain text."""
    async with runtime.database.write(caller.organization_id) as session:
        row = await find_provider(session, Capability.TELEPHONY, "sip")
    assert row is not None
    return row.settings | {"passwords": decrypt_secrets(runtime.keyring, row).get("passwords")}


@pytest.fixture
async def operator(people: People, caller: Caller) -> Person:
    operator = await people.join(caller.organization_id, superadmin=True)
    await operator.post(f"/dashboard/organizations/{caller.organization_id}")
    return operator


def trunk(number: int, **fields: str) -> Fields:
    return {f"settings.trunks.{number}.{name}": value for name, value in fields.items()}


TWO_TRUNKS: Mapping[str, str | list[str]] = {
    **trunk(0, name="office", hosts="pbx.example.com", username="switchboard", passwords="hunter2", registers="true"),
    **trunk(1, name="backup", hosts="sip.example.net:5080\nsip2.example.net", max_calls="10", calls_per_second="2.5"),
    **trunk(2, before="", name="", hosts=""),
}


async def test_trunks_are_saved_with_their_passwords_which_are_not_shown(
    operator: Person, caller: Caller, runtime: Runtime
) -> None:
    assert (await operator.post(SIP, {**TWO_TRUNKS})).status == 303
    assert await read_settings(runtime, caller) == {
        "trunks": [
            {"name": "office", "hosts": ["pbx.example.com"], "username": "switchboard", "registers": True},
            {
                "name": "backup",
                "hosts": ["sip.example.net:5080", "sip2.example.net"],
                "max_calls": 10,
                "calls_per_second": 2.5,
            },
        ],
        "passwords": {"office": "hunter2"},
    }
    html = (await operator.get(SIP)).html
    assert "hunter2" not in html
    assert "Control addresses of the processes <code>switchboard sip-gateway</code>." in html
    assert html.count("A value is set. Leave empty to keep it.") == 2, "the password, and the signing secret"


async def test_a_password_stays_with_its_trunk_when_trunks_are_renamed_moved_and_removed(
    operator: Person, caller: Caller, runtime: Runtime
) -> None:
    await operator.post(SIP, {**TWO_TRUNKS})
    swapped = {
        **trunk(0, before="backup", name="backup", hosts="sip.example.net", username="b", passwords="second"),
        **trunk(1, before="office", name="head-office", hosts="pbx.example.com", username="switchboard", passwords=""),
    }
    assert (await operator.post(SIP, swapped)).status == 303
    assert (await read_settings(runtime, caller))["passwords"] == {"head-office": "hunter2", "backup": "second"}
    assert (await operator.post(SIP, trunk(0, before="backup", name="backup", hosts="sip.example.net"))).status == 303
    stored = await read_settings(runtime, caller)
    assert ([each["name"] for each in stored["trunks"]], stored["passwords"]) == (["backup"], {"backup": "second"})


async def test_trunks_are_moved_and_removed_by_buttons_of_the_form(
    operator: Person, caller: Caller, runtime: Runtime
) -> None:
    moved = await operator.post(SIP, {**TWO_TRUNKS, "change": "up:trunks:1"})
    assert (moved.status, moved.location) == (303, SIP)
    stored = await read_settings(runtime, caller)
    assert ([each["name"] for each in stored["trunks"]], stored["passwords"]) == (
        ["backup", "office"],
        {"office": "hunter2"},
    )
    html = (await operator.get(SIP)).html
    assert 'name="change" value="up:trunks:1"' in html
    for change in ("up:trunks:0", "up:trunks:7", "up:gateways:1", "down:trunks:x", "up"):
        kept = {
            **trunk(0, before="backup", name="backup", hosts="sip.example.net"),
            **trunk(1, before="office", name="office", hosts="pbx.example.com", username="u"),
        }
        assert (await operator.post(SIP, {**kept, "change": change})).status == 303
        assert [each["name"] for each in (await read_settings(runtime, caller))["trunks"]] == ["backup", "office"]
    await operator.post(SIP, {**kept, "change": "remove:trunks:0"})
    stored = await read_settings(runtime, caller)
    assert ([each["name"] for each in stored["trunks"]], stored["passwords"]) == (["office"], {"office": "hunter2"})
    wrong = {**trunk(0, name="x", hosts="no host"), **trunk(1, name="y", hosts="pbx.example.com")}
    refused = await operator.post(SIP, {**wrong, "change": "up:trunks:1"})
    assert refused.status == 422
    assert 'id="fault-settings.trunks.1.hosts"' in refused.html, "the refused form has the new order"


async def test_a_browser_without_scripts_moves_trunks(browser: Browser, live: LivePlatform) -> None:
    operator = await create_person(live.runtime, live.caller.client, live.caller.organization_id, superadmin=True)
    base_url = live.runtime.settings.base_url
    async with await browser.new_context(base_url=base_url, java_script_enabled=False) as context:
        window = await sign_in_window(context, live, email=operator.email)
        page = window.page
        await window.open(SIP)
        await fill_trunk(page, 1, Name="office", Hosts="pbx.example.com")
        await page.locator("summary", has_text="Add: Trunk").click()
        await fill_trunk(page, 2, Name="backup", Hosts="sip.example.net", Password="hunter2")
        await page.get_by_role("group", name="Trunk 2").get_by_label("User").press("Enter")
        await page.get_by_text("SIP trunk was saved.").wait_for()
        await window.open(SIP)
        await page.get_by_role("group", name="Trunk 2").get_by_role("button", name="Move up").click()
        await page.get_by_text("SIP trunk was saved.").wait_for()
        first = page.get_by_role("group", name="Trunk 1")
        assert await first.get_by_label("Name").first.input_value() == "backup"
        assert await first.get_by_role("button", name="Move up").count() == 0
    stored = await read_settings(live.runtime, live.caller)
    assert ([each["name"] for each in stored["trunks"]], stored["passwords"]) == (
        ["backup", "office"],
        {"backup": "hunter2"},
    )


async def test_errors_name_the_trunk_and_the_setting(operator: Person, caller: Caller, runtime: Runtime) -> None:
    refused = await operator.post(
        SIP,
        {
            **trunk(0, name="office", hosts="pbx.example.com", registers="true"),
            **trunk(1, name="backup", hosts="sip example", country="XX", max_calls="many", addresses="1.2.3"),
        },
    )
    assert refused.status == 422
    for field in ("hosts", "country", "max_calls", "addresses"):
        assert f'id="fault-settings.trunks.1.{field}"' in refused.html, field
    assert "backup: must be a host name or an IP address" in refused.html
    assert '<a href="#field-settings.trunks.1.hosts">Trunk 2, Hosts</a>' in refused.html
    assert 'value="backup"' in refused.html
    incomplete = await operator.post(SIP, trunk(0, name="office", hosts="pbx.example.com", registers="true"))
    assert 'id="fault-settings.trunks.0.username"' in incomplete.html
    assert "office: a user name and a password are needed" in incomplete.html
    async with runtime.database.write(caller.organization_id) as session:
        assert await find_provider(session, Capability.TELEPHONY, "sip") is None


async def test_a_typed_password_survives_a_refusal_and_is_not_shown(
    operator: Person, caller: Caller, runtime: Runtime
) -> None:
    wrong = {
        **trunk(0, name="office", hosts="no host"),
        **trunk(1, name="backup", hosts="sip.example.com", passwords="hunter2"),
    }
    refused = await operator.post(SIP, wrong)
    typed = dict(re.findall(r'name="(settings[^"]*:typed)" value="([^"]*)"', refused.html))
    assert ("hunter2" in refused.html, refused.status, [*typed]) == (False, 422, ["settings.trunks.1.passwords:typed"])
    fixed = trunk(0, name="backup", hosts="sip.example.com", passwords="")
    moved: Fields = {"settings.trunks.0.passwords:typed": typed["settings.trunks.1.passwords:typed"]}
    other: Fields = {"settings.signing_secret:typed": typed["settings.trunks.1.passwords:typed"]}
    assert (await operator.post(SIP, {**fixed, **moved, **other})).status == 303
    assert (await read_settings(runtime, caller))["passwords"] == {"backup": "hunter2"}, "typed once"
    assert (await operator.post(SIP, {**fixed, **moved, **trunk(0, passwords="third")})).status == 303
    assert (await read_settings(runtime, caller))["passwords"] == {"backup": "third"}, "typed again"


async def test_an_owner_changes_passwords_only(
    operator: Person, people: People, caller: Caller, runtime: Runtime
) -> None:
    await operator.post(SIP, {**TWO_TRUNKS})
    owner = await people.join(caller.organization_id)
    html = (await owner.get(SIP)).html
    assert "pbx.example.com" not in html
    assert "Only the operator of this installation can set: Trunks, Gateways, Signing secret" in html
    typed = {**trunk(0, before="backup", passwords="new", name="stolen", hosts="10.0.0.1")}
    signing: Fields = {"settings.signing_secret": "a secret with which an owner signs commands"}
    assert (await owner.post(SIP, {**typed, **signing})).status == 422
    assert (await owner.post(SIP, typed)).status == 303
    assert "there is no trunk of this name" in (await owner.post(SIP, trunk(0, before="x", passwords="y"))).html
    stored = await read_settings(runtime, caller)
    assert stored["passwords"] == {"office": "hunter2", "backup": "new"}
    assert [each["name"] for each in stored["trunks"]] == ["office", "backup"]
    assert stored["trunks"][0]["hosts"] == ["pbx.example.com"]


@asynccontextmanager
async def run_account_gateway(runtime: Runtime, control_port: int) -> AsyncIterator[None]:
    """Run a gateway that reads the accounts from the database."""
    reader = AccountReader(SipTelephony, runtime.database, runtime.keyring, runtime.settings.base_url)
    context: Any = ProviderAccounts(reader, asyncio.Event(), asyncio.Event(), CollectorRegistry())
    async with run_gateway(context, sip_port=find_free_port(), control_port=control_port):
        yield


async def fill_trunk(page: Page, number: int, **texts: str) -> None:
    row = page.get_by_role("group", name=f"Trunk {number}")
    for label, text in texts.items():
        await row.get_by_label(label, exact=False).first.fill(text)


@pytest.mark.parametrize("width", [1440, 390])
async def test_trunks_are_added_moved_removed_and_checked_in_a_browser(
    browser: Browser, live: LivePlatform, width: int
) -> None:
    far_end, control_port = FarEnd(find_free_port()), find_free_port()
    await far_end.start()
    async with open_owner_window(browser, live, superadmin=True) as window:
        page = window.page
        await page.set_viewport_size({"width": width, "height": 900})
        await window.open("/dashboard/organizations")
        await window.open(SIP)
        await fill_trunk(page, 1, Name="silent", Hosts=f"127.0.0.1:{find_free_port()}")
        await page.get_by_role("button", name="Add: Trunk").click()
        await fill_trunk(page, 2, Name="office", Hosts=f"127.0.0.1:{far_end.port}", Password="hunter2")
        await page.get_by_role("button", name="Add: Trunk").click()
        third = page.get_by_role("group", name="Trunk 3")
        await third.get_by_role("button", name="Remove").click()
        await page.get_by_role("group", name="Trunk 2").get_by_role("button", name="Move up").click()
        first = page.get_by_role("group", name="Trunk 1")
        assert await first.get_by_label("Name").first.input_value() == "office"
        assert await first.get_by_label("Password").input_value() == "hunter2"
        await first.get_by_text("More settings").click()
        await first.get_by_label("Codecs").fill("opus\nPCMA")
        await page.get_by_label("Gateways").fill(f"http://127.0.0.1:{control_port}")
        await window.check_accessibility()
        await check_width(window)
        await check_refusal(window)
        await page.get_by_role("group", name="Trunk 2").get_by_label("Name").first.fill("silent")
        await page.get_by_role("button", name="Add SIP trunk").click()
        await page.get_by_text("SIP trunk was saved.").wait_for()
        async with run_account_gateway(live.runtime, control_port):
            await page.locator("#telephony li", has_text="SIP trunk").get_by_role("button", name="Check").click()
            await page.get_by_role("heading", name="Check of SIP trunk").wait_for()
            results = page.get_by_role("listitem")
            office, silent = results.filter(has_text="trunk office"), results.filter(has_text="trunk silent")
            assert "answers OPTIONS with 200" in await office.inner_text()
            assert await office.get_by_text("Works", exact=True).is_visible()
            assert "does not answer OPTIONS over udp" in await silent.inner_text()
            assert await silent.get_by_text("Does not work").is_visible()
            await window.check_accessibility()
            await check_width(window)
        await page.get_by_role("button", name="Check again").click()
        await page.get_by_text("Run `switchboard sip-gateway`").wait_for()
        await window.open(SIP)
        assert await first.get_by_label("Codecs").input_value() == "opus\nPCMA"
        assert await first.get_by_label("Codecs").is_visible(), "settings that are set are unfolded"
        await window.check_accessibility()
        await check_width(window)
    stored = await read_settings(live.runtime, live.caller)
    assert [each["name"] for each in stored["trunks"]] == ["office", "silent"]
    assert stored["trunks"][0]["codecs"] == ["opus", "PCMA"]
    assert stored["passwords"] == {"office": "hunter2"}
    await far_end.stop()


async def check_width(window: Window) -> None:
    """Check that the page does not scroll sideways."""
    wide = await window.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{wide} pixels too wide"


async def check_refusal(window: Window) -> None:
    """Check that a refused form names the fault within its column, and keeps the password of the first trunk."""
    page = window.page
    await page.get_by_role("group", name="Trunk 2").get_by_label("Name").first.fill("silent" * 20)
    async with page.expect_console_message(lambda message: "422" in message.text):
        await page.get_by_role("button", name="Add SIP trunk").click()
    window.complaints.clear()
    await page.get_by_role("link", name="Trunk 2, Name").wait_for()
    measure = "faults => faults.map((fault) => fault.scrollWidth - fault.clientWidth)"
    overflows = await page.locator(".fault, .faults").evaluate_all(measure)
    assert (len(overflows), max(overflows)) == (2, 0), "pixels beyond the column"
    await page.get_by_role("group", name="Trunk 1").get_by_text("A value is set. Leave empty to keep it.").wait_for()
    await window.check_accessibility()
