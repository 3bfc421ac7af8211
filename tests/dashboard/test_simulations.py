"""The pages of simulations."""

import re

import pytest

from tests.fixtures.app import UNKNOWN_ID, Caller
from tests.fixtures.dashboard import People, Person, Window
from tests.fixtures.json_access import objects_at

PROMPT = (
    'When the caller says "opening hours": say "We are open from seven to six."\n'
    'When the caller says "goodbye": say "Goodbye." and call end_call'
)
Fields = dict[str, str | list[str]]
FORM: Fields = {
    "name": "Opening hours",
    "mode": "text",
    "lines": "What are your opening hours?\n\nGoodbye",
    "goal": "",
    "persona": "",
    "max_turns": "20",
}


@pytest.fixture
async def member(people: People, caller: Caller) -> Person:
    return await people.join(caller.organization_id, role="builder")


@pytest.fixture
async def page(caller: Caller) -> str:
    """Address of an agent's simulations."""
    response = await caller.post(
        "/v1/agents", {"name": "Front desk", "system_prompt": PROMPT, "greeting_message": "Hello."}
    )
    return f"/dashboard/agents/{response.json['id']}/simulations"


async def test_a_simulation_is_created_followed_and_repeated(window: Window) -> None:
    page = window.page
    await window.open("/dashboard/agents")
    await page.get_by_role("link", name="Agent", exact=True).click()
    await page.get_by_role("link", name="Simulations").click()
    await page.get_by_role("link", name="New simulation").click()
    await page.get_by_role("textbox", name="Name", exact=True).first.fill("Asks for the hours")
    await page.get_by_label("Lines").fill("What are your opening hours?\nGoodbye")
    await page.get_by_label("Words").fill("open from * to six")
    await page.get_by_role("button", name="Add a criterion").click()
    second = page.get_by_role("group", name="Criterion 2")
    await second.get_by_label("Type").select_option("ended_by")
    await second.get_by_label("Ended by").fill("caller")
    await window.check_accessibility()
    await page.get_by_role("button", name="Run").click()
    await page.get_by_text("50%").wait_for()
    await page.get_by_text("We are open from seven to six every day of the week.", exact=True).wait_for()
    await page.get_by_text("It was ended by: agent.").wait_for()
    await window.check_accessibility()
    await page.get_by_role("button", name="Run again").click()
    await page.get_by_text("50%").wait_for()
    await page.get_by_role("link", name="Simulations of Agent").click()
    await page.get_by_text("1 of 2").nth(1).wait_for()
    await window.check_accessibility()


async def test_each_kind_of_criterion_is_saved_and_shown_again(member: Person, caller: Caller, page: str) -> None:
    rows: Fields = {
        "assertions.0.type": "said",
        "assertions.0.value": "seven",
        "assertions.0.name": "Says when",
        "assertions.1.type": "said",
        "assertions.1.value": "",
        "assertions.2.type": "never_said",
        "assertions.2.value": "ten",
        "assertions.3.type": "tool_called",
        "assertions.3.value": "end_call",
        "assertions.3.arguments": '{"a": 1}',
        "assertions.4.type": "ended_by",
        "assertions.4.value": "agent",
        "assertions.5.type": "judge",
        "assertions.5.value": "Friendly?",
        "assertions.6.type": "latency_under_ms",
        "assertions.6.value": "900",
    }
    refused = await member.post(f"{page}/new", {**FORM, **rows})
    assert refused.status == 422
    assert re.search(r"<a href=\"#field-assertions.6.type\">.*latency_under_ms needs mode audio", refused.html)
    del rows["assertions.6.value"]
    response = await member.post(f"{page}/new", {**FORM, **rows})
    assert response.status == 303, response.html
    simulation = (await caller.get(response.location.replace("/dashboard", "/v1"))).json
    assert simulation["lines"] == ["What are your opening hours?", "Goodbye"]
    types = [assertion["type"] for assertion in objects_at(simulation, "assertions")]
    assert types == ["said", "never_said", "tool_called", "ended_by", "judge"]
    again = (await member.get(f"{page}/new?like={simulation['id']}")).html
    for fragment in (
        'value="Says when"',
        'value="Friendly?"',
        "{&#34;a&#34;: 1}",
        "What are your opening hours?\nGoodbye",
    ):
        assert fragment in again


WRONG: list[tuple[Fields, str]] = [
    ({"assertions.1.type": "ended_by", "assertions.1.value": "no agent"}, "assertions.1.value"),
    (
        {"assertions.1.type": "tool_called", "assertions.1.value": "x", "assertions.1.arguments": "[1"},
        "assertions.1.arguments",
    ),
    ({"assertions.1.type": "latency_under_ms", "assertions.1.value": "soon"}, "assertions.1.value"),
    ({"assertions.1.type": "said", "assertions.1.value": "x", "lines": ""}, "lines"),
    ({"assertions.1.type": "said", "assertions.1.value": "x", "name": ""}, "name"),
    ({}, "assertions"),
]


async def test_errors_appear_at_their_fields(member: Person, page: str) -> None:
    """The row before the invalid one is empty."""
    for fields, field in WRONG:
        refused = await member.post(
            f"{page}/new", {**FORM, "assertions.0.type": "said", "assertions.0.value": "", **fields}
        )
        assert (refused.status, f'id="fault-{field}"' in refused.html) == (422, True), field


async def test_a_spoken_simulation_requires_a_phone_number(member: Person, page: str) -> None:
    refused = await member.post(
        f"{page}/new", {**FORM, "mode": "audio", "assertions.0.type": "said", "assertions.0.value": "seven"}
    )
    assert refused.status == 409
    assert "Give it a number of the loopback carrier" in refused.html


async def test_other_organizations_simulations_are_unreachable(member: Person, stranger: Caller, page: str) -> None:
    agent = (await stranger.post("/v1/agents", {"name": "Theirs", "system_prompt": PROMPT})).json["id"]
    data = {"name": "Theirs", "lines": ["Hello"], "assertions": [{"type": "said", "text": "x"}]}
    simulation = (await stranger.post(f"/v1/agents/{agent}/simulations", data)).json["id"]
    foreign_page = f"/dashboard/agents/{agent}/simulations"
    for path in (
        f"{foreign_page}/{simulation}",
        f"{foreign_page}/{simulation}/result",
        f"{foreign_page}/new",
        f"{page}/{simulation}",
        f"{page}/new?like={simulation}",
    ):
        assert (await member.get(path)).status == 404
    for path in (f"{foreign_page}/{simulation}/again", f"{page}/{simulation}/again", f"{page}/{UNKNOWN_ID}/again"):
        assert (await member.post(path)).status == 404
    assert (
        await member.post(f"{foreign_page}/new", {**FORM, "assertions.0.type": "said", "assertions.0.value": "x"})
    ).status == 404
