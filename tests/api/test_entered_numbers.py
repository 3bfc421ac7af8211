"""Numbers of a SIP trunk, which the organization enters."""

from datetime import datetime

from sqlmodel import select
from switchboard.foundation.database import now
from switchboard.resources.phone_numbers.jobs import charge_rent, release_number
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller, fresh_number
from tests.fixtures.json_access import at
from tests.fixtures.sip_account import add_sip_trunk
from tests.fixtures.work import do_due_work

PATH = "/v1/phone-numbers/enter"


async def test_entered_numbers_work_at_once_cost_nothing_and_are_released_at_once(
    caller: Caller, runtime: Runtime
) -> None:
    await add_sip_trunk(runtime, caller.organization_id)
    first, second = fresh_number(), fresh_number()
    wanted = [{"phone_number": first, "friendly_name": "Desk"}, {"phone_number": second}]
    entered = await caller.post(PATH, {"numbers": wanted})
    assert entered.status == 201, entered.body
    shown = [at(entered.json, "items", place) for place in (0, 1)]
    assert [(at(number, "friendly_name"), at(number, "status")) for number in shown] == [
        ("Desk", "active"),
        (second, "active"),
    ]
    await do_due_work(runtime, charge_rent)
    async with runtime.database.write(caller.organization_id) as session:
        row = (await session.exec(select(PhoneNumber).where(PhoneNumber.phone_number == first))).one()
        assert (row.carrier, row.billed_until) == ("sip", None)
    released = await caller.send("DELETE", f"/v1/phone-numbers/{row.id}")
    assert released.status == 200, released.body
    assert datetime.fromisoformat(str(released.json["release_at"])) <= now()
    await do_due_work(runtime, release_number)
    assert (await caller.get("/v1/phone-numbers")).json["total"] == 1
    assert (await caller.post(PATH, {"numbers": wanted[:1]})).status == 201, "a released number can be entered again"


async def test_a_number_of_another_organization_is_refused_with_the_whole_list(
    caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    taken = str((await stranger.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["phone_number"])
    await add_sip_trunk(runtime, caller.organization_id)
    refused = await caller.post(PATH, {"numbers": [{"phone_number": fresh_number()}, {"phone_number": taken}]})
    assert (refused.status, refused.json["code"]) == (409, "conflict")
    assert taken in str(refused.json["detail"])
    assert (await caller.get("/v1/phone-numbers")).json["total"] == 0


async def test_lists_that_cannot_be_entered_are_refused(caller: Caller, runtime: Runtime) -> None:
    number = fresh_number()
    sells = await caller.post(PATH, {"numbers": [{"phone_number": number}]})
    assert (sells.status, sells.json["code"]) == (409, "invalid_state")
    await add_sip_trunk(runtime, caller.organization_id)
    twice = await caller.post(PATH, {"numbers": [{"phone_number": number}, {"phone_number": number}]})
    assert (twice.status, at(twice.json, "errors", 0, "field")) == (422, "numbers.1.phone_number")
    agent = await caller.post(PATH, {"numbers": [{"phone_number": number}], "inbound_agent_id": UNKNOWN_ID})
    assert (agent.status, at(agent.json, "errors", 0, "field")) == (422, "inbound_agent_id")
    for numbers in ([], [{"phone_number": "12"}]):
        assert (await caller.post(PATH, {"numbers": numbers})).status == 422
    assert (await caller.get("/v1/phone-numbers")).json["total"] == 0
