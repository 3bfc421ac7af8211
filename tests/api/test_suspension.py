"""A suspended organization: every way to other people is refused or waits, until the operator resumes it."""

from uuid import UUID, uuid4

import pytest
from sqlmodel import select
from switchboard.foundation.database import Database
from switchboard.foundation.web.errors import OrganizationSuspended
from switchboard.foundation.web.paging import get_row
from switchboard.plugin_sdk import IncomingCall, RejectCall
from switchboard.resources.automations.queries import DUE_RUNS
from switchboard.resources.calls.dialing import CallDialer
from switchboard.resources.calls.inbound import InboundCallRouter
from switchboard.resources.calls.models import Call
from switchboard.resources.campaigns.jobs import dial_campaigns
from switchboard.resources.destinations.service import find_refusals
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.service import IdentityError
from switchboard.resources.identity.support import resume_organization, suspend_organization
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.sms.sender import MessageSender
from switchboard.runtime import Runtime

from tests.fixtures.app import ApiResponse, Caller, Organizations, fresh_number
from tests.fixtures.automations import advance_runs, create_automation, list_runs, publish_message
from tests.fixtures.campaigns import create_agent_and_number, create_campaign, send_action
from tests.fixtures.work import do_due_work, list_due

REASON = "unpaid invoices"


async def suspend(runtime: Runtime, organization_id: UUID) -> None:
    await suspend_organization(runtime.database, organization_id, reason=REASON, actor="operator")


async def resume(runtime: Runtime, organization_id: UUID) -> None:
    await resume_organization(runtime.database, organization_id, actor="operator")


async def list_calls(database: Database, organization_id: UUID) -> list[Call]:
    async with database.write(organization_id) as session:
        return list((await session.exec(select(Call))).all())


def check_refused(response: ApiResponse) -> None:
    assert (response.status, response.json["code"]) == (403, "organization_suspended")
    assert "suspended" in str(response.json["detail"])


async def test_the_api_refuses_a_suspended_organization_until_it_is_resumed(
    organizations: Organizations, runtime: Runtime
) -> None:
    caller = await organizations.create()
    await suspend(runtime, caller.organization_id)
    check_refused(await caller.get("/v1/agents"))
    check_refused(await caller.post("/v1/contacts", {"phone_number": "+15550100001"}))
    check_refused(await caller.post("/v1/calls", {}))
    await resume(runtime, caller.organization_id)
    fresh = await organizations.create_key(caller.organization_id, scopes=["agents:read"])
    assert (await fresh.get("/v1/agents")).status == 200


async def test_an_inbound_call_is_rejected_and_recorded(caller: Caller, runtime: Runtime) -> None:
    body = await create_agent_and_number(runtime, caller)
    async with runtime.database.write(caller.organization_id) as session:
        number = (await session.get_one(PhoneNumber, UUID(str(body["phone_number_id"])))).phone_number
    router, incoming = runtime.call(InboundCallRouter), IncomingCall(f"lb-{uuid4().hex}", "+15550100001", number)
    await suspend(runtime, caller.organization_id)
    instruction = await router.answer_inbound_call(caller.organization_id, "loopback", incoming)
    assert isinstance(instruction, RejectCall)
    (call,) = await list_calls(runtime.database, caller.organization_id)
    assert (call.status, call.error_message) == ("failed", OrganizationSuspended.default_detail)


async def test_a_queued_call_is_not_dialed(caller: Caller, runtime: Runtime) -> None:
    body = await create_agent_and_number(runtime, caller)
    order = {"agent_id": body["agent_id"], "from_number_id": body["phone_number_id"], "to_number": "+15550100001"}
    created = await caller.post("/v1/calls", order)
    assert created.status == 201, created.body
    await suspend(runtime, caller.organization_id)
    await runtime.call(CallDialer).place_with_carrier(caller.organization_id, UUID(str(created.json["id"])))
    (call,) = await list_calls(runtime.database, caller.organization_id)
    assert (call.status, call.dialing_at) == ("failed", None)
    assert call.error_message == OrganizationSuspended.default_detail


async def test_a_queued_text_message_is_not_sent_and_new_ones_are_refused(caller: Caller, runtime: Runtime) -> None:
    number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    accepted = await caller.post("/v1/sms", {"to_number": "+15550100001", "from_number_id": number, "body": "Hello"})
    message_id = UUID(str(accepted.json["id"]))
    await suspend(runtime, caller.organization_id)
    await runtime.call(MessageSender).send_due_message(caller.organization_id, message_id)
    async with runtime.database.write(caller.organization_id) as session:
        (message,) = (await session.exec(select(SmsMessage))).all()
        assert (message.status, message.error_message) == ("failed", OrganizationSuspended.default_detail)
        conversation = await get_row(session, SmsConversation, message.conversation_id)
        with pytest.raises(OrganizationSuspended):
            await sms.save_outbound_message(session, conversation, sms.MessageContent("Hello again"), author="agent")


async def test_a_campaign_waits_and_goes_on_by_itself(caller: Caller, runtime: Runtime) -> None:
    body = await create_agent_and_number(runtime, caller)
    campaign = await create_campaign(caller, {"name": "Reminders", **body}, ["+15550100001"])
    await send_action(caller, campaign, "start")
    await suspend(runtime, caller.organization_id)
    assert await do_due_work(runtime, dial_campaigns) == 0
    assert await list_calls(runtime.database, caller.organization_id) == []
    await resume(runtime, caller.organization_id)
    assert await do_due_work(runtime, dial_campaigns) == 1
    assert len(await list_calls(runtime.database, caller.organization_id)) == 1
    fresh = await read_again(caller, runtime, f"/v1/campaigns/{campaign['id']}")
    assert fresh.json["status"] == "running"


async def read_again(caller: Caller, runtime: Runtime, path: str) -> ApiResponse:
    organizations = Organizations(runtime, caller.client)
    return await (await organizations.create_key(caller.organization_id, scopes=["campaigns:read"])).get(path)


async def test_an_automation_waits_and_goes_on_by_itself(caller: Caller, runtime: Runtime) -> None:
    automation = await create_automation(caller)
    await publish_message(runtime, caller)
    await suspend(runtime, caller.organization_id)
    await advance_runs(runtime, caller, steps=1)
    assert await list_due(runtime, DUE_RUNS) == []
    await resume(runtime, caller.organization_id)
    assert len(await list_due(runtime, DUE_RUNS)) == 1
    await advance_runs(runtime, caller)
    (run,) = await list_runs(caller, automation)
    assert run["status"] == "completed"


async def test_every_outbound_path_asks_and_the_tenant_role_cannot_lift_a_suspension(
    caller: Caller, runtime: Runtime
) -> None:
    await suspend(runtime, caller.organization_id)
    async with runtime.database.write(caller.organization_id) as session:
        refusals = await find_refusals(session, ["+15550100001", "+15550100002"], is_accepted=True)
        assert [type(refusal) for refusal in refusals.values()] == [OrganizationSuspended] * 2
    with pytest.raises(Exception, match="permission denied"):
        async with runtime.database.write(caller.organization_id) as session:
            (await session.get_one(Organization, caller.organization_id)).suspended_at = None


async def test_a_suspension_needs_a_reason(caller: Caller, runtime: Runtime) -> None:
    with pytest.raises(IdentityError, match="reason"):
        await suspend_organization(runtime.database, caller.organization_id, reason=" ", actor="operator")
