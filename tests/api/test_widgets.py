"""Widgets: settings, keys, and origins. What visitors do with them is in `tests/widgets`."""

import pytest
from switchboard.resources.widgets.origins import is_allowed_origin

from tests.fixtures.app import UNKNOWN_ID, Caller, Organizations
from tests.fixtures.json_access import Json


async def create_widget(caller: Caller, **fields: object) -> Json:
    """Create a widget of a new agent."""
    agent = (await caller.post("/v1/agents", {"name": "Front desk"})).json["id"]
    response = await caller.post("/v1/widgets", {"name": "Website", "agent_id": agent, **fields})
    assert response.status == 201, response.body
    return response.json


async def test_a_widget_is_created_changed_listed_and_deleted(caller: Caller) -> None:
    widget = await create_widget(caller, allowed_origins=["https://www.example.com/", "https://*.Example.org"])
    assert str(widget["public_key"]).startswith("pk_")
    assert widget["allowed_origins"] == ["https://www.example.com", "https://*.example.org"]
    assert (widget["max_spend_per_day"], widget["demo_enabled"], widget["enabled"]) == (10.0, False, True)
    path = f"/v1/widgets/{widget['id']}"
    changed = await caller.send("PATCH", path, {"color": "#1d4ed8", "max_spend_per_day": 2.5, "language": "de"})
    assert (changed.json["color"], changed.json["max_spend_per_day"], changed.json["language"]) == (
        "#1d4ed8",
        2.5,
        "de",
    )
    assert (await caller.get(path)).json == changed.json
    assert (await caller.get(f"/v1/widgets?agent_id={widget['agent_id']}")).json["items"] == [changed.json]
    assert (await caller.get(f"/v1/widgets?agent_id={UNKNOWN_ID}")).json["total"] == 0
    assert (await caller.send("DELETE", path)).status == 204
    assert (await caller.get(path)).status == 404


@pytest.mark.parametrize(
    "origin",
    [
        "www.example.com",
        "https://www.example.com/shop",
        "https://*",
        "https://www.*.example.com",
        "javascript://example.com",
        "https://example.com; script-src *",
        "https://user@example.com",
        "https://*.com",
        "https://*.co.uk",
        "https://*.github.io",
        "https://*.unknown-ending",
        "https://*.localhost",
    ],
)
async def test_an_origin_is_a_scheme_and_a_host(caller: Caller, origin: str) -> None:
    widget = await create_widget(caller)
    response = await caller.send("PATCH", f"/v1/widgets/{widget['id']}", {"allowed_origins": [origin]})
    assert response.status == 422, origin


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://www.example.com", True),
        ("http://www.example.com", False),
        ("https://www.example.com:8443", False),
        ("https://shop.example.org", True),
        ("https://a.shop.example.org", True),
        ("https://example.org", False),
        ("https://evilexample.org", False),
        ("https://shop.example.org.evil.com", False),
        ("null", False),
    ],
)
def test_origins_are_matched_as_browsers_match_frame_ancestors(origin: str, allowed: bool) -> None:
    assert is_allowed_origin(["https://www.example.com", "https://*.example.org"], origin) is allowed


async def test_a_widget_needs_an_agent_of_its_own_organization(caller: Caller, stranger: Caller) -> None:
    widget = await create_widget(caller)
    foreign = (await create_widget(stranger))["agent_id"]
    assert (await caller.send("PATCH", f"/v1/widgets/{widget['id']}", {"agent_id": foreign})).status == 422
    assert (await caller.post("/v1/widgets", {"name": "x", "agent_id": foreign})).status == 422
    assert (await stranger.get(f"/v1/widgets/{widget['id']}")).status == 404
    assert (await stranger.get("/v1/widgets")).json["total"] == 1
    assert (await caller.send("DELETE", f"/v1/agents/{widget['agent_id']}")).status == 204
    assert (await caller.get(f"/v1/widgets/{widget['id']}")).status == 404


async def test_widgets_need_the_scopes_of_agents(organizations: Organizations) -> None:
    reader = await organizations.create(scopes=["agents:read"])
    assert (await reader.get("/v1/widgets")).status == 200
    assert (await reader.post("/v1/widgets", {"name": "x", "agent_id": UNKNOWN_ID})).status == 403
