"""Numbers that may be called and texted, and limits per hour: the patterns of toll fraud, by every way to a carrier."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlmodel import update
from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.engine.conversation.call import Tool
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.engine.conversation.tools import AgentRequests, SendTextMessage, TransferCall
from switchboard.foundation.database import now
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import BrowserCall, IncomingCall, RejectCall, ToolCall, ToolContext
from switchboard.resources.calls.browser import answer_browser_call
from switchboard.resources.calls.dialing import CallDialer
from switchboard.resources.calls.inbound import InboundCallRouter
from switchboard.resources.campaigns.jobs import dial_campaigns
from switchboard.resources.destinations.models import OutboundPause
from switchboard.resources.destinations.schemas import NarrowedDestinations
from switchboard.resources.destinations.service import find_destination_refusal
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.policy import Destinations, OutboundLimits, Policy, Prices
from switchboard.resources.sms.sender import MessageSender
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, LivePlatform, Organizations, fresh_number
from tests.fixtures.automations import get_actions, run_once
from tests.fixtures.calls import add_call
from tests.fixtures.campaigns import create_agent_and_number, create_campaign, list_contacts, send_action
from tests.fixtures.dashboard import People
from tests.fixtures.json_access import Json
from tests.fixtures.virtual_clock import CLOCK

PREMIUM, SATELLITE, MOBILE = "+449098790000", "+881612345678", "+25261234567"
ALLOWED = "+15550100001"
NOT_NARROWED = NarrowedDestinations()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (PREMIUM, "a premium-rate number"),
        ("+4490987900001234", "not a number of its country's numbering plan"),
        ("+19005550100", "a premium-rate number"),
        ("+19001110000", "a premium-rate number"),
        ("+979123456789", "a premium-rate number"),
        ("+97912345678", "a premium-rate number"),
        ("+491805123456", "a shared-cost number"),
        ("+80812345678", "a shared-cost number"),
        ("+447012345678", "a personal number"),
        ("+8783123456789", "a personal number"),
        ("+870776543210", "a satellite number"),
        (SATELLITE, "a satellite number"),
        ("+88213123456789", "a number of an international network"),
        ("+8835100012345", "a number of an international network"),
        ("+49900123456789", "not a number of its country's numbering plan"),
    ],
)
def test_what_costs_most_is_closed(number: str, words: str) -> None:
    assert words in (find_destination_refusal(Destinations(), NOT_NARROWED, number) or "")
    assert find_destination_refusal(Destinations(allow=(number[:5],)), NOT_NARROWED, number) is None


def test_a_short_code_is_not_texted() -> None:
    assert find_destination_refusal(Destinations(), NOT_NARROWED, "72345") == "72345 is not an E.164 phone number."


@pytest.mark.parametrize("number", [ALLOWED, "+15555550100", "+14155551234", "+18005550100", "+442079460000", MOBILE])
def test_ordinary_numbers_are_open(number: str) -> None:
    assert find_destination_refusal(Destinations(), NOT_NARROWED, number) is None


@pytest.mark.parametrize(
    ("destinations", "open_numbers", "closed_numbers"),
    [
        ({"countries": ["US", "GB"]}, [ALLOWED, "+14155551234", "+442079460000"], [MOBILE, "+18765550100", SATELLITE]),
        ({"countries": ["US"], "allow": ["+2526"]}, [MOBILE], ["+442079460000"]),
        ({"block": ["+252"]}, [ALLOWED], [MOBILE]),
        ({"allow": ["+1"], "block": ["+1900"]}, ["+14155551234"], ["+19005550100"]),
        ({"countries": []}, [], [ALLOWED]),
    ],
)
def test_block_wins_over_allow_and_allow_over_countries(
    destinations: dict[str, list[str]], open_numbers: list[str], closed_numbers: list[str]
) -> None:
    policy = Destinations.model_validate(destinations)
    assert all(find_destination_refusal(policy, NOT_NARROWED, number) is None for number in open_numbers)
    assert all(find_destination_refusal(policy, NOT_NARROWED, number) for number in closed_numbers)


async def prepare(runtime: Runtime, caller: Caller) -> Json:
    """Create an agent and a number; return the fields of a call without its destination."""
    made = await create_agent_and_number(runtime, caller)
    return {"agent_id": made["agent_id"], "from_number_id": made["phone_number_id"]}


def build_text(call: Json, to_number: str) -> Json:
    return {"from_number_id": call["from_number_id"], "to_number": to_number, "body": "Hello"}


async def set_policy(runtime: Runtime, caller: Caller, policy: Policy) -> None:
    """Replace the organization's policy as its tenant file does."""
    async with runtime.database.system() as session:
        organization = await session.get_one(Organization, caller.organization_id)
        organization.policy = policy


@pytest.mark.parametrize("number", [PREMIUM, SATELLITE])
async def test_the_api_refuses_calls_and_text_messages(runtime: Runtime, caller: Caller, number: str) -> None:
    call = await prepare(runtime, caller)
    for path, body in (("calls", {**call, "to_number": number}), ("sms", build_text(call, number))):
        refused = await caller.post(f"/v1/{path}", body)
        assert (refused.status, refused.json["code"]) == (403, "destination_not_allowed"), refused.body
        assert number in str(refused.json["detail"])
    assert (await caller.get("/v1/calls")).json["total"] == 0
    assert (await caller.get("/v1/sms/conversations")).json["total"] == 0


async def test_what_is_queued_for_a_newly_blocked_number_is_not_sent(runtime: Runtime, caller: Caller) -> None:
    call = await prepare(runtime, caller)
    placed = await caller.post("/v1/calls", {**call, "to_number": ALLOWED})
    text = await caller.post("/v1/sms", build_text(call, ALLOWED))
    await set_policy(runtime, caller, Policy(destinations=Destinations(block=(ALLOWED,))))
    await runtime.call(CallDialer).place_with_carrier(caller.organization_id, UUID(str(placed.json["id"])))
    ended = (await caller.get(f"/v1/calls/{placed.json['id']}")).json
    assert (ended["status"], ended["ended_reason"], ended["started_at"]) == ("failed", "destination_not_allowed", None)
    await runtime.call(MessageSender).send_due_message(caller.organization_id, UUID(str(text.json["id"])))
    messages: Any = (await caller.get(f"/v1/sms/conversations/{text.json['conversation_id']}/messages")).json["items"]
    assert (messages[0]["status"], ALLOWED in messages[0]["error_message"]) == ("failed", True)


@pytest.mark.parametrize("kind", ["send_sms", "start_call"])
async def test_automations_fail_with_the_reason(runtime: Runtime, caller: Caller, kind: str) -> None:
    call = await prepare(runtime, caller)
    params: Json = {**call, "to_number": PREMIUM} if kind == "start_call" else build_text(call, PREMIUM)
    run = await run_once(runtime, caller, {"type": kind, "params": params})
    assert run["status"] == "failed"
    assert "a premium-rate number" in str(get_actions(run)[0]["error"])


async def test_a_campaign_skips_premium_numbers(runtime: Runtime, caller: Caller) -> None:
    body = {"name": "Reminders", **await create_agent_and_number(runtime, caller)}
    numbers = [f"+4490987900{digits:02}" for digits in range(30)]
    campaign = await create_campaign(caller, body, numbers)
    await send_action(caller, campaign, "start")
    await runtime.call(dial_campaigns, organization_id=caller.organization_id)
    ended = (await caller.get(f"/v1/campaigns/{campaign['id']}")).json
    assert (ended["status"], ended["called"], ended["skipped"]) == ("completed", 0, 30)
    contacts = await list_contacts(caller, campaign)
    assert {contact["status"] for contact in contacts} == {"skipped"}
    assert all("a premium-rate number" in str(contact["error"]) for contact in contacts)
    assert (await caller.get("/v1/calls")).json["total"] == 0


CLOSED: Json = {
    "enabled": True,
    "slots": [{"days": ["mon"], "start": "00:00", "end": "00:01"}],
    "holidays": [],
    "outside_action": "forward",
}


async def test_calls_are_not_forwarded_to_closed_numbers(runtime: Runtime, organizations: Organizations) -> None:
    caller = await organizations.create(policy=Policy(destinations=Destinations(allow=(PREMIUM,))))
    call = await prepare(runtime, caller)
    path = f"/v1/phone-numbers/{call['from_number_id']}"
    number = await caller.send("PUT", path, {"forward_number": PREMIUM, "schedule": CLOSED})
    assert number.status == 200, number.body
    refused = await caller.send("PUT", path, {"forward_number": SATELLITE})
    assert (refused.status, refused.json["code"]) == (403, "destination_not_allowed")
    await set_policy(runtime, caller, Policy())
    incoming = IncomingCall(f"lb-{uuid4().hex}", ALLOWED, str(number.json["phone_number"]))
    router = runtime.call(InboundCallRouter)
    assert isinstance(await router.answer_inbound_call(caller.organization_id, "loopback", incoming), RejectCall)
    await set_policy(runtime, caller, Policy(destinations=Destinations(allow=(PREMIUM,))))
    await caller.post("/v1/do-not-call", {"phone_number": PREMIUM})
    again = replace(incoming, carrier_call_id=f"lb-{uuid4().hex}")
    assert isinstance(await router.answer_inbound_call(caller.organization_id, "loopback", again), RejectCall)
    items: Any = (await caller.get("/v1/calls")).json["items"]
    assert [item["status"] for item in items] == ["failed", "failed"]
    assert "do-not-call list" in items[0]["error_message"]
    assert "a premium-rate number" in items[1]["error_message"]


async def test_a_browser_cannot_dial_a_closed_number(runtime: Runtime, caller: Caller) -> None:
    await prepare(runtime, caller)
    numbers: Any = (await caller.get("/v1/phone-numbers")).json["items"]
    dialed = BrowserCall(f"lb-{uuid4().hex}", numbers[0]["phone_number"], SATELLITE, "browser")
    router = runtime.call(InboundCallRouter)
    answer = await answer_browser_call(runtime.database, router, caller.organization_id, "loopback", dialed)
    assert isinstance(answer, RejectCall)
    items: Any = (await caller.get("/v1/calls")).json["items"]
    assert items[0]["ended_reason"] == "destination_not_allowed"


async def test_an_agent_does_not_transfer_a_call_to_a_satellite(live: LivePlatform) -> None:
    connects = f'call transfer_call(to_number="{SATELLITE}")'
    rules = f'When the caller says "hello" or "goodbye": {connects}\nOtherwise: {connects}'
    await live.caller.send("PUT", f"/v1/agents/{live.agent_id}", {"system_prompt": rules})
    await live.simulate_call("Hello", "Goodbye")
    items: Any = (await live.caller.get("/v1/calls")).json["items"]
    call = await live.wait_for_end(items[0]["id"])
    assert (call["ended_reason"], call["transferred_to"]) == ("caller_hung_up", None)
    transcript: Any = (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json
    assert "transfer_call" in str(transcript["items"]), "the model tried"


class Texts:
    """Records text messages."""

    def __init__(self) -> None:
        self.sent: list[str | None] = []

    async def send_text(self, body: str, to_number: str | None) -> None:
        self.sent.append(to_number)


OTHER_PARTY = "+15550100009"


async def talk_into(agent: AgentSettings, tool: str, number: str) -> tuple[bool, Json]:
    """Let the model use a tool with a number; return whether it would be dialed or texted, and the tool's result."""
    requests, texts = AgentRequests(), Texts()
    context = ToolContext(uuid4(), uuid4(), uuid4(), OTHER_PARTY, "+15550100200")
    tools: list[Tool] = [TransferCall(requests, agent), SendTextMessage(texts.send_text, agent)]
    toolbox = Toolbox(tools, context, disabled=agent.disabled_tools)
    arguments: Json = {"to_number": number} if tool == "transfer_call" else {"to_number": number, "body": "Hello"}
    result = await toolbox.run(ToolCall("1", tool, arguments))
    return requests.transfer is not None or bool(texts.sent), result


@pytest.mark.parametrize("tool", ["transfer_call", "send_sms"])
@pytest.mark.parametrize(
    ("number", "settings", "may"),
    [
        (MOBILE, {}, False),
        (MOBILE, {"system_prompt": "Transfer to {{manager}}."}, False),
        (MOBILE, {"system_prompt": f"Transfer to {MOBILE}1."}, False),
        (MOBILE, {"system_prompt": f"Emergencies: {MOBILE}. Otherwise help."}, True),
        (MOBILE, {"system_prompt": "Emergencies: +252 (61) 234-567."}, True),
        (MOBILE, {"allowed_numbers": [MOBILE]}, True),
        (MOBILE, {"any_number": True}, True),
        (MOBILE, {"any_number": True, "disabled_tools": ["transfer_call", "send_sms"]}, False),
    ],
)
async def test_a_model_uses_only_numbers_that_its_agent_names(
    tool: str, number: str, settings: dict[str, Any], may: bool
) -> None:
    done, result = await talk_into(AgentSettings(**settings), tool, number)
    assert done is may, result
    assert ("error" in result) is not may


@pytest.mark.parametrize(
    ("settings", "may"),
    [
        ({}, False),
        ({"system_prompt": "Transfer to the reception, or to client:{{client}}."}, False),
        ({"system_prompt": "Transfer to client:reception_2, or to a subclient:reception."}, False),
        ({"system_prompt": "Transfer to client:reception. Otherwise help."}, True),
        ({"allowed_numbers": ["client:reception"]}, True),
        ({"any_number": True}, True),
    ],
)
async def test_a_model_transfers_calls_only_to_clients_that_its_agent_names(
    settings: dict[str, Any], may: bool
) -> None:
    agent = AgentSettings(**settings)
    done, result = await talk_into(agent, "transfer_call", "client:reception")
    assert done is may, result
    assert not (await talk_into(agent, "send_sms", "client:reception"))[0], "a client gets no text messages"


async def test_a_model_texts_the_other_party_but_does_not_dial_it() -> None:
    agent = AgentSettings()
    assert (await talk_into(agent, "send_sms", OTHER_PARTY))[0]
    assert not (await talk_into(agent, "transfer_call", OTHER_PARTY))[0], "the caller id may be forged"


async def test_agents_keep_their_numbers_and_tools_in_versions(caller: Caller) -> None:
    fields = {"disabled_tools": ["transfer_call"], "allowed_numbers": [ALLOWED], "any_number": True}
    agent = (await caller.post("/v1/agents", {"name": "A", **fields})).json
    assert {name: agent[name] for name in fields} == fields
    plain = (await caller.post("/v1/agents", {"name": "B"})).json
    assert [plain[name] for name in fields] == [[], [], False]
    versions: Any = (await caller.get(f"/v1/agents/{agent['id']}/versions")).json["items"]
    assert {name: versions[0]["settings"][name] for name in fields} == fields
    for field, value in (("disabled_tools", ["transfer"]), ("allowed_numbers", ["0301234"]), ("any_number", None)):
        refused = await caller.send("PUT", f"/v1/agents/{agent['id']}", {field: value})
        assert refused.status == 422
        assert str(refused.json["detail"]).startswith(field)


async def post_calls(caller: Caller, call: Json, count: int) -> list[int]:
    """Place calls to numbers of one prefix; return the statuses."""
    return [(await caller.post("/v1/calls", {**call, "to_number": fresh_number()})).status for _ in range(count)]


async def test_many_short_calls_pause_outbound_work_once(
    runtime: Runtime, organizations: Organizations, people: People
) -> None:
    caller = await organizations.create(policy=Policy(outbound_limits=OutboundLimits(calls_per_hour=5)))
    stranger = await organizations.create()
    call = await prepare(runtime, caller)
    counted = metrics.outbound_pauses.labels("calls_per_hour")._value.get()
    assert await post_calls(caller, call, 8) == [201] * 5 + [429] * 3
    refused = await caller.post("/v1/sms", build_text(call, ALLOWED))
    assert (refused.status, refused.json["code"]) == (429, "outbound_paused")
    assert "its limit of 5 calls per hour" in str(refused.json["detail"])
    assert 3500 < int(refused.headers["Retry-After"]) <= 3660
    entries = [entry for entry in await people.list_audit_entries(caller.organization_id) if "outbound" in entry[1]]
    assert [(actor, action) for actor, action, _ in entries] == [("system", "outbound.paused")]
    assert metrics.outbound_pauses.labels("calls_per_hour")._value.get() == counted + 1
    assert await post_calls(stranger, await prepare(runtime, stranger), 1) == [201]


async def test_a_pause_ends_after_an_hour_or_when_its_limit_is_changed(
    runtime: Runtime, organizations: Organizations, people: People
) -> None:
    caller = await organizations.create(policy=Policy(outbound_limits=OutboundLimits(calls_per_hour=1)))
    call = await prepare(runtime, caller)
    assert await post_calls(caller, call, 2) == [201, 429]
    async with runtime.database.write(caller.organization_id) as session:
        await session.exec(update(OutboundPause).values(ends_at=now()))
    assert await post_calls(caller, call, 2) == [201, 429]
    await set_policy(runtime, caller, Policy(outbound_limits=OutboundLimits(calls_per_hour=4)))
    assert await post_calls(caller, call, 3) == [201, 201, 429]
    await set_policy(runtime, caller, Policy())
    assert await post_calls(caller, call, 3) == [201] * 3
    entries = [entry for entry in await people.list_audit_entries(caller.organization_id) if "outbound" in entry[1]]
    assert len(entries) == 3, "each pause is recorded once"


async def test_calls_before_a_pause_do_not_count_after_it(runtime: Runtime, organizations: Organizations) -> None:
    caller = await organizations.create(policy=Policy(outbound_limits=OutboundLimits(calls_per_hour=2)))
    call = await prepare(runtime, caller)
    assert await post_calls(caller, call, 3) == [201, 201, 429]
    async with runtime.database.write(caller.organization_id) as session:
        pause = await session.get_one(OutboundPause, caller.organization_id)
    CLOCK.advance((pause.ends_at - now()).total_seconds())
    assert await post_calls(caller, call, 3) == [201, 201, 429]


async def test_text_messages_pause_outbound_work(runtime: Runtime, organizations: Organizations) -> None:
    caller = await organizations.create(policy=Policy(outbound_limits=OutboundLimits(texts_per_hour=2)))
    call = await prepare(runtime, caller)
    texts = [await caller.post("/v1/sms", build_text(call, fresh_number())) for _ in range(4)]
    assert [text.status for text in texts] == [201, 201, 429, 429]
    assert await post_calls(caller, call, 1) == [429]


async def test_minutes_of_calls_that_go_on_pause_outbound_work(runtime: Runtime, organizations: Organizations) -> None:
    caller = await organizations.create(policy=Policy(outbound_limits=OutboundLimits(minutes_per_hour=60)))
    call = await prepare(runtime, caller)
    hour = timedelta(hours=1)
    old = {"direction": "outbound", "started_at": now() - 3 * hour, "ended_at": now() - 2 * hour}
    await add_call(runtime, caller, now() - 3 * hour, **old)
    await add_call(runtime, caller, now() - hour, started_at=now() - hour, ended_at=now())
    assert await post_calls(caller, call, 2) == [201, 201], "inbound minutes, and earlier ones, do not count"
    half = now() - hour / 2
    await add_call(runtime, caller, half, direction="outbound", started_at=half, status="in-progress")
    await add_call(runtime, caller, half, transferred_to=ALLOWED, started_at=half, status="in-progress")
    assert await post_calls(caller, call, 2) == [201, 429]


async def test_spending_pauses_outbound_work(runtime: Runtime, live: LivePlatform) -> None:
    policy = Policy(prices=Prices(call_minute=1.5), outbound_limits=OutboundLimits(spend_per_hour=2.0))
    await set_policy(runtime, live.caller, policy)
    for _ in range(2):
        await live.wait_for_end((await live.place_call("+15550100040"))["id"])
    call: Json = {"agent_id": live.agent_id, "from_number_id": live.number_id}
    refused = await live.caller.post("/v1/calls", {**call, "to_number": ALLOWED})
    assert (refused.status, refused.json["code"]) == (429, "outbound_paused")
    assert "2 US dollars per hour" in str(refused.json["detail"])


async def test_a_campaign_pauses_with_the_reason(runtime: Runtime, organizations: Organizations) -> None:
    caller = await organizations.create(policy=Policy(outbound_limits=OutboundLimits(calls_per_hour=3)))
    body = {"name": "Reminders", **await create_agent_and_number(runtime, caller)}
    campaign = await create_campaign(caller, body, [fresh_number() for _ in range(10)], max_concurrent=10)
    await send_action(caller, campaign, "start")
    await runtime.call(dial_campaigns, organization_id=caller.organization_id)
    paused = (await caller.get(f"/v1/campaigns/{campaign['id']}")).json
    assert (paused["status"], paused["called"]) == ("paused", 3)
    assert "its limit of 3 calls per hour" in str(paused["status_reason"])
    refused = await caller.post(f"/v1/campaigns/{campaign['id']}/resume")
    assert (refused.status, refused.json["detail"]) == (409, paused["status_reason"])
    await set_policy(runtime, caller, Policy())
    assert (await caller.post(f"/v1/campaigns/{campaign['id']}/resume")).status == 200


async def test_calls_are_not_forwarded_while_outbound_work_is_paused(
    runtime: Runtime, organizations: Organizations
) -> None:
    caller = await organizations.create(policy=Policy(outbound_limits=OutboundLimits(calls_per_hour=2)))
    call = await prepare(runtime, caller)
    path = f"/v1/phone-numbers/{call['from_number_id']}"
    number = (await caller.send("PUT", path, {"forward_number": ALLOWED, "schedule": CLOSED})).json["phone_number"]
    router = runtime.call(InboundCallRouter)
    answers = [
        await router.answer_inbound_call(
            caller.organization_id, "loopback", IncomingCall(f"lb-{uuid4().hex}", OTHER_PARTY, str(number))
        )
        for _ in range(3)
    ]
    assert [isinstance(answer, RejectCall) for answer in answers] == [False, False, True]
    assert await post_calls(caller, call, 1) == [429], "forwarded calls count"
