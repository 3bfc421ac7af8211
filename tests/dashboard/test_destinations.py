"""The page of destinations: an owner narrows what the operator opens, and never widens it."""

import pytest
from switchboard.resources.identity.policy import Destinations, Policy

from tests.fixtures.app import Caller, Organizations, fresh_number
from tests.fixtures.dashboard import People

PAGE = "/dashboard/destinations"
BERLIN, MUNICH, LONDON, ALLOWED = "+493012345678", "+498912345678", "+442079460000", "+881612345678"
POLICY = Policy(destinations=Destinations(countries=("DE", "GB", "US"), allow=(ALLOWED,)))


async def list_open_numbers(caller: Caller) -> list[str]:
    """Return the numbers that may be called."""
    agent = await caller.post("/v1/agents", {"name": "Agent"})
    number = await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})
    opened = []
    for to_number in (BERLIN, MUNICH, LONDON, ALLOWED):
        call = {"agent_id": agent.json["id"], "from_number_id": number.json["id"], "to_number": to_number}
        answer = await caller.post("/v1/calls", call)
        assert answer.status in (201, 403), answer.body
        opened += [to_number] if answer.status == 201 else []
    return opened


async def test_an_owner_narrows_what_the_operator_opens(people: People, organizations: Organizations) -> None:
    caller = await organizations.create(policy=POLICY)
    owner = await people.join(caller.organization_id)
    assert "DE, GB, US" in (await owner.get(PAGE)).html
    assert await list_open_numbers(caller) == [BERLIN, MUNICH, LONDON, ALLOWED]

    assert (await owner.post(PAGE, {"countries": "de", "block": "+4989,+4940"})).status == 303
    assert await list_open_numbers(caller) == [BERLIN]
    page = (await owner.get(PAGE)).html
    assert "DE</textarea>" in page
    assert "+4989 +4940</textarea>" in page
    assert "destinations.narrowed" in [entry[1] for entry in await people.list_audit_entries(caller.organization_id)]

    assert (await owner.post(PAGE, {"countries": "", "block": ""})).status == 303
    assert await list_open_numbers(caller) == [BERLIN, MUNICH, LONDON, ALLOWED]


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ({"countries": "DE FR"}, "the operator has not opened FR"),
        ({"countries": "Germany"}, "GERMANY is not an ISO 3166 alpha-2 country code"),
        ({"block": "4930"}, "4930 is not the beginning of a number in E.164, such as +4930"),
        ({"block": "+0"}, "+0 is not the beginning of a number in E.164"),
    ],
)
async def test_a_form_that_widens_or_has_errors_changes_nothing(
    people: People, organizations: Organizations, sent: dict[str, str | list[str]], error: str
) -> None:
    caller = await organizations.create(policy=POLICY)
    owner = await people.join(caller.organization_id)
    refused = await owner.post(PAGE, sent)
    assert refused.status == 422
    assert error in refused.html
    assert await list_open_numbers(caller) == [BERLIN, MUNICH, LONDON, ALLOWED]


async def test_members_do_not_see_the_page(people: People, caller: Caller) -> None:
    await people.join(caller.organization_id)
    member = await people.join(caller.organization_id, role="builder")
    assert PAGE not in (await member.get("/dashboard")).html
    assert (await member.get(PAGE)).status == 403
    assert (await member.post(PAGE, {"countries": "DE"})).status == 403


async def test_each_organization_narrows_its_own_destinations(people: People, caller: Caller, stranger: Caller) -> None:
    owner = await people.join(caller.organization_id)
    assert (await owner.post(PAGE, {"countries": "US"})).status == 303
    assert await list_open_numbers(caller) == []
    assert BERLIN in await list_open_numbers(stranger)
