"""The audit log: one entry for each effect, with the same action through the API and the dashboard."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pyotp
import pytest
from sqlmodel import col
from switchboard.apps.server import app
from switchboard.foundation.audit import AuditAction, AuditEntry
from switchboard.foundation.database import new_id, now
from switchboard.foundation.web.openapi import iterate_endpoints
from switchboard.resources.automations.models import AutomationRun
from switchboard.resources.knowledge_bases.models import KnowledgeDocument
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, create_bakery, fresh_number
from tests.fixtures.dashboard import PASSWORD, People, Person
from tests.fixtures.json_access import objects_at
from tests.fixtures.sip_account import add_sip_trunk

Fields = dict[str, str | list[str]]
ACTION = {"type": "tag_contact", "params": {"phone_number": "{{ data.to_number }}", "tag": "seen"}}
ACTION_FIELDS: Fields = {
    "name": "Tag",
    "trigger_type": "sms.sent",
    "enabled": "true",
    "actions.0.type": "tag_contact",
    "actions.0.params.phone_number": "{{ data.to_number }}",
    "actions.0.params.tag": "seen",
}
PEOPLE = [{"phone_number": "+15550100001"}]


def write_operations() -> set[str]:
    """The operations whose scope allows changes."""
    application = app.create_routes()
    return {
        declared.name
        for _, method, declared in iterate_endpoints(application)
        if (declared.scope or "").endswith(":write") and method != "get"
    }


@dataclass(slots=True)
class Organization:
    """An organization with an API key and an owner, and the requests made so far."""

    runtime: Runtime
    caller: Caller
    owner: Person
    operations: set[str] = field(default_factory=set)
    seen: set[UUID] = field(default_factory=set)

    async def api(self, action: AuditAction, method: str, path: str, body: object = None) -> str:
        """Send an API request; return the id of the changed resource."""
        rule, _ = self.caller.client.app.url_map.bind("localhost").match(path.partition("?")[0], method=method)
        self.operations.add(rule.rpartition(".")[2])
        response = await self.caller.send(method, path, body)
        assert response.status < 300, (path, response.body)
        await self.expect([(f"key:{self.caller.key_id}", action)], path)
        return str(response.json.get("id", "")) if response.json else ""

    async def dashboard(self, action: AuditAction, path: str, fields: Fields | None = None) -> str:
        """Send a form of the dashboard; return the last part of the address that it leads to."""
        response = await self.owner.post(path, fields)
        assert response.status in (200, 303), (path, response.html)
        await self.expect([(f"user:{self.owner.user_id}", action)], f"{path}: {await self._notice()}")
        return response.headers.get("Location", "").rpartition("/")[2]

    async def _notice(self) -> str:
        return (await self.owner.get("/dashboard/account")).html.partition('class="notice ')[2][:200]

    async def expect(self, expected: Sequence[tuple[str, str]], effect: str) -> None:
        """Require that exactly these entries were added."""
        entries = [entry for entry in await self.entries() if entry.id not in self.seen]
        self.seen |= {entry.id for entry in entries}
        assert [(entry.actor, entry.action) for entry in entries] == list(expected), effect

    async def entries(self) -> list[AuditEntry]:
        async with self.runtime.database.write(self.caller.organization_id) as session:
            rows = session.select(AuditEntry).order_by(col(AuditEntry.created_at), col(AuditEntry.id))
            return list((await session.exec(rows)).all())

    async def only(self, path: str) -> str:
        """Return the id of the only item of a list of the API."""
        items = (await self.caller.get(path)).json["items"]
        assert isinstance(items, list)
        (item,) = items
        assert isinstance(item, dict)
        return str(item["id"])

    async def fail_document(self, document_id: str) -> None:
        async with self.runtime.database.write(self.caller.organization_id) as session:
            document = await session.get_one(KnowledgeDocument, UUID(document_id))
            document.status = "failed"

    async def fail_run(self, automation_id: str) -> str:
        """Add a failed run to an automation."""
        async with self.runtime.database.write(self.caller.organization_id) as session:
            run = AutomationRun(
                id=new_id(),
                organization_id=self.caller.organization_id,
                automation_id=UUID(automation_id),
                event_id=new_id(),
                trigger_event="sms.sent",
                depth=1,
                status="failed",
                completed_at=now(),
            )
            session.add(run)
            return str(run.id)


@pytest.fixture
async def organization(runtime: Runtime, caller: Caller, people: People) -> Organization:
    owner = await people.join(caller.organization_id)
    made = Organization(runtime, caller, owner)
    made.seen = {entry.id for entry in await made.entries()}
    return made


async def test_every_write_operation_records_one_entry_as_the_dashboard_does(organization: Organization) -> None:
    at = organization
    await _contacts(at)
    await _privacy_requests(at)
    await _webhooks(at)
    await _knowledge(at)
    await _agents(at)
    await _widgets(at)
    await _appointments(at)
    await _numbers_calls_and_messages(at)
    await _campaigns(at)
    await _automations(at)
    assert at.operations == write_operations()
    assert not any("hush" in entry.subject for entry in await at.entries()), "an entry holds a value"


async def _contacts(at: Organization) -> None:
    contact = await at.api(AuditAction.CONTACT_CREATED, "POST", "/v1/contacts", PEOPLE[0])
    await at.api(AuditAction.CONTACT_UPDATED, "PATCH", f"/v1/contacts/{contact}", {"name": "hush"})
    await at.api(AuditAction.CONTACT_DELETED, "DELETE", f"/v1/contacts/{contact}")
    await at.dashboard(AuditAction.CONTACT_CREATED, "/dashboard/contacts/new", {"phone_number": "+15550100002"})
    contact = await at.only("/v1/contacts")
    await at.dashboard(AuditAction.CONTACT_UPDATED, f"/dashboard/contacts/{contact}", {"name": "hush"})
    await at.dashboard(AuditAction.CONTACT_DELETED, f"/dashboard/contacts/{contact}/delete")
    entry = await at.api(AuditAction.DO_NOT_CALL_ENTRY_CREATED, "POST", "/v1/do-not-call", PEOPLE[0])
    await at.caller.post("/v1/do-not-call", PEOPLE[0])
    await at.expect([], "a number that is on the list already")
    await at.api(AuditAction.DO_NOT_CALL_ENTRY_DELETED, "DELETE", f"/v1/do-not-call/{entry}")
    do_not_call = "/dashboard/contacts/do-not-call"
    await at.dashboard(AuditAction.DO_NOT_CALL_ENTRY_CREATED, do_not_call, {"phone_number": "+15550100001"})
    entry = await at.only("/v1/do-not-call")
    await at.dashboard(AuditAction.DO_NOT_CALL_ENTRY_DELETED, f"{do_not_call}/{entry}/remove")


async def _privacy_requests(at: Organization) -> None:
    wanted = {"kind": "export", "phone_number": "+15550100001"}
    await at.api(AuditAction.PRIVACY_REQUEST_CREATED, "POST", "/v1/privacy-requests", wanted)
    await at.dashboard(AuditAction.PRIVACY_REQUEST_CREATED, "/dashboard/privacy", dict(wanted))


async def _webhooks(at: Organization) -> None:
    paths = "/v1/webhook-endpoints", "/dashboard/webhooks"
    url = {"url": "https://example.com/"}
    endpoint = await at.api(AuditAction.WEBHOOK_ENDPOINT_CREATED, "POST", paths[0], url)
    await at.api(AuditAction.WEBHOOK_ENDPOINT_UPDATED, "PATCH", f"{paths[0]}/{endpoint}", {"description": "hush"})
    await at.api(AuditAction.WEBHOOK_ENDPOINT_SECRET_ROTATED, "POST", f"{paths[0]}/{endpoint}/rotate-secret")
    delivery = await at.api(AuditAction.WEBHOOK_ENDPOINT_TESTED, "POST", f"{paths[0]}/{endpoint}/test")
    replay = f"/v1/webhook-deliveries/{delivery}/replay"
    await at.api(AuditAction.WEBHOOK_DELIVERY_REPLAYED, "POST", replay)
    await at.dashboard(AuditAction.WEBHOOK_DELIVERY_REPLAYED, f"{paths[1]}/deliveries/{delivery}/replay")
    ever = {"since": "2026-01-01T00:00:00Z"}
    await at.api(AuditAction.WEBHOOK_ENDPOINT_REPLAYED, "POST", f"/v1/webhook-endpoints/{endpoint}/replay-failed", ever)
    await at.dashboard(AuditAction.WEBHOOK_ENDPOINT_REPLAYED, f"{paths[1]}/{endpoint}/replay-failed", {"hours": "1"})
    await at.dashboard(AuditAction.WEBHOOK_ENDPOINT_TESTED, f"{paths[1]}/{endpoint}/test")
    await at.dashboard(AuditAction.WEBHOOK_ENDPOINT_UPDATED, f"{paths[1]}/{endpoint}", {"description": "hush again"})
    await at.dashboard(AuditAction.WEBHOOK_ENDPOINT_UPDATED, f"{paths[1]}/{endpoint}/enabled", {"enabled": "false"})
    await at.dashboard(AuditAction.WEBHOOK_ENDPOINT_SECRET_ROTATED, f"{paths[1]}/{endpoint}/rotate")
    await at.dashboard(AuditAction.WEBHOOK_ENDPOINT_DELETED, f"{paths[1]}/{endpoint}/delete")
    await at.dashboard(AuditAction.WEBHOOK_ENDPOINT_CREATED, f"{paths[1]}/new", {"url": "https://example.com/"})
    endpoint = await at.only(paths[0])
    await at.api(AuditAction.WEBHOOK_ENDPOINT_DELETED, "DELETE", f"{paths[0]}/{endpoint}")
    await at.api(AuditAction.INTEGRATION_UPDATED, "PUT", "/v1/integrations", {"partner_api_key": "hush"})
    integration = f"{paths[1]}/integration"
    await at.dashboard(AuditAction.INTEGRATION_UPDATED, integration, {"partner_api_key": "hush"})
    await at.dashboard(AuditAction.INTEGRATION_UPDATED, f"{integration}/forget", {"secret": "partner_api_key"})


async def _knowledge(at: Organization) -> None:
    base = await at.api(AuditAction.KNOWLEDGE_BASE_CREATED, "POST", "/v1/knowledge-bases", {"name": "Base"})
    content = {"filename": "a.txt", "content": "Open from seven to six."}
    documents = f"/v1/knowledge-bases/{base}/documents"
    document = await at.api(AuditAction.KNOWLEDGE_DOCUMENT_CREATED, "POST", documents, content)
    await at.fail_document(document)
    await at.dashboard(AuditAction.KNOWLEDGE_DOCUMENT_RETRIED, f"/dashboard/documents/{document}/retry")
    await at.api(AuditAction.KNOWLEDGE_DOCUMENT_DELETED, "DELETE", f"/v1/documents/{document}")
    page = f"/dashboard/knowledge/{base}"
    pasted: Fields = {"filename": "b.txt", "content": "Closed on Sundays."}
    await at.dashboard(AuditAction.KNOWLEDGE_DOCUMENT_CREATED, f"{page}/paste", pasted)
    document = await at.only(documents)
    await at.dashboard(AuditAction.KNOWLEDGE_DOCUMENT_DELETED, f"/dashboard/documents/{document}/delete")
    await at.dashboard(AuditAction.KNOWLEDGE_BASE_UPDATED, f"{page}/edit", {"name": "hush"})
    await at.dashboard(AuditAction.KNOWLEDGE_BASE_DELETED, f"{page}/delete")
    await at.dashboard(AuditAction.KNOWLEDGE_BASE_CREATED, "/dashboard/knowledge/new", {"name": "Base"})
    base = await at.only("/v1/knowledge-bases")
    await at.api(AuditAction.KNOWLEDGE_BASE_DELETED, "DELETE", f"/v1/knowledge-bases/{base}")


async def _appointments(at: Organization) -> None:
    calendar = await at.api(AuditAction.CALENDAR_CONNECTED, "POST", "/v1/calendars", {"provider": "local", "name": "A"})
    await at.api(AuditAction.CALENDAR_UPDATED, "PATCH", f"/v1/calendars/{calendar}", {"name": "hush"})
    hours = {"timezone": "UTC", "slots": [{"days": ["mon", "wed", "fri"], "start": "09:00", "end": "17:00"}]}
    kind = {"name": "Visit", "calendar_ids": [calendar], "hours": hours}
    type_id = await at.api(AuditAction.APPOINTMENT_TYPE_CREATED, "POST", "/v1/appointment-types", kind)
    path = f"/v1/appointment-types/{type_id}"
    await at.api(AuditAction.APPOINTMENT_TYPE_UPDATED, "PATCH", path, {"name": "hush"})
    first, second = objects_at((await at.caller.get(f"{path}/availability?limit=2")).json, "items")
    person = {"slot_token": first["slot_token"], "phone_number": "+15550100001", "name": "hush"}
    appointment = await at.api(AuditAction.APPOINTMENT_BOOKED, "POST", "/v1/appointments", person)
    booked = f"/v1/appointments/{appointment}"
    await at.api(AuditAction.APPOINTMENT_MOVED, "PATCH", booked, {"slot_token": second["slot_token"]})
    await at.api(AuditAction.APPOINTMENT_UPDATED, "PATCH", booked, {"name": "hush hush"})
    await at.api(AuditAction.APPOINTMENT_CANCELED, "DELETE", booked)
    await at.api(AuditAction.APPOINTMENT_TYPE_DELETED, "DELETE", path)
    await at.api(AuditAction.CALENDAR_DELETED, "DELETE", f"/v1/calendars/{calendar}")


async def _widgets(at: Organization) -> None:
    agent = str((await at.caller.post("/v1/agents", {"name": "Website"})).json["id"])
    at.seen = {entry.id for entry in await at.entries()}
    widget = await at.api(AuditAction.WIDGET_CREATED, "POST", "/v1/widgets", {"name": "Site", "agent_id": agent})
    await at.api(AuditAction.WIDGET_UPDATED, "PATCH", f"/v1/widgets/{widget}", {"title": "hush"})
    await at.api(AuditAction.WIDGET_DELETED, "DELETE", f"/v1/widgets/{widget}")
    page = await at.dashboard(AuditAction.WIDGET_CREATED, f"/dashboard/agents/{agent}/widgets")
    await at.dashboard(AuditAction.WIDGET_UPDATED, f"/dashboard/widgets/{page}", {"greeting": "hush"})
    await at.dashboard(AuditAction.WIDGET_UPDATED, f"/dashboard/widgets/{page}/turn-off")
    await at.dashboard(AuditAction.WIDGET_UPDATED, f"/dashboard/widgets/{page}/turn-on")
    await at.dashboard(AuditAction.WIDGET_DELETED, f"/dashboard/widgets/{page}/delete")
    await at.dashboard(AuditAction.AGENT_DELETED, f"/dashboard/agents/{agent}/delete")


async def _agents(at: Organization) -> None:
    agent = await at.api(AuditAction.AGENT_CREATED, "POST", "/v1/agents", {"name": "Agent"})
    await at.api(
        AuditAction.AGENT_UPDATED, "PUT", f"/v1/agents/{agent}", {"webhook_secret": "hush hush hush hush hush"}
    )
    page = f"/dashboard/agents/{agent}"
    await at.dashboard(AuditAction.AGENT_UPDATED, page, {"name": "hush"})
    await at.dashboard(AuditAction.AGENT_UPDATED, f"{page}/pause")
    await at.dashboard(AuditAction.AGENT_UPDATED, f"{page}/activate")
    draft = {"revision": None, "changes": {"name": "hush hush"}}
    await at.api(AuditAction.AGENT_DRAFT_SAVED, "PUT", f"/v1/agents/{agent}/draft", draft)
    saved = (await at.caller.get(f"/v1/agents/{agent}/draft")).json["revision"]
    await at.api(AuditAction.AGENT_UPDATED, "POST", f"/v1/agents/{agent}/draft/publish", {"revision": saved})
    await at.api(AuditAction.AGENT_DRAFT_SAVED, "PUT", f"/v1/agents/{agent}/draft", {"revision": None, "changes": {}})
    await at.api(AuditAction.AGENT_DRAFT_DISCARDED, "DELETE", f"/v1/agents/{agent}/draft")
    await at.dashboard(AuditAction.AGENT_VERSION_RESTORED, f"{page}/versions/1/restore")
    assertions = [{"type": "said", "text": "Hello"}]
    body = {"name": "Test", "lines": ["Hello"], "assertions": assertions}
    simulation = await at.api(AuditAction.SIMULATION_CREATED, "POST", f"/v1/agents/{agent}/simulations", body)
    await at.dashboard(AuditAction.SIMULATION_CREATED, f"{page}/simulations/{simulation}/again")
    await at.dashboard(AuditAction.BROWSER_CALL_TOKEN_CREATED, f"{page}/talk")
    token = "/v1/browser-call/token?platform=web"
    await at.api(AuditAction.BROWSER_CALL_TOKEN_CREATED, "POST", token)
    await at.api(AuditAction.AGENT_DELETED, "DELETE", f"/v1/agents/{agent}")
    fields: Fields = {"name": "Agent", "agent_type": "general"}
    await at.dashboard(AuditAction.AGENT_CREATED, "/dashboard/agents/new", fields)
    agent = await at.only("/v1/agents")
    await at.dashboard(AuditAction.AGENT_DELETED, f"/dashboard/agents/{agent}/delete")


async def _numbers_calls_and_messages(at: Organization) -> None:
    order = {"phone_number": fresh_number()}
    number = await at.api(AuditAction.PHONE_NUMBER_ORDERED, "POST", "/v1/phone-numbers", order)
    await at.api(AuditAction.PHONE_NUMBER_UPDATED, "PUT", f"/v1/phone-numbers/{number}", {"friendly_name": "hush"})
    page = "/dashboard/numbers"
    fields: Fields = {"phone_number": fresh_number()}
    await add_sip_trunk(at.runtime, at.caller.organization_id)
    entered = {"numbers": [{"phone_number": fresh_number()}]}
    await at.api(AuditAction.PHONE_NUMBER_ENTERED, "POST", "/v1/phone-numbers/enter", entered)
    await at.dashboard(AuditAction.PHONE_NUMBER_ENTERED, f"{page}/import", {"people": fresh_number()})
    other = await at.dashboard(AuditAction.PHONE_NUMBER_ORDERED, f"{page}/order", fields)
    await at.dashboard(AuditAction.PHONE_NUMBER_UPDATED, f"{page}/{other}", {"friendly_name": "hush"})
    message = {"from_number_id": number, "to_number": "+15550100001", "body": "hush"}
    await at.api(AuditAction.SMS_MESSAGE_SENT, "POST", "/v1/sms", message)
    texts: Fields = {"from_number_id": number, "to_number": "+15550100001", "body": "hush"}
    conversation = await at.dashboard(AuditAction.SMS_MESSAGE_SENT, "/dashboard/texts/new", texts)
    await at.dashboard(AuditAction.SMS_MESSAGE_SENT, f"/dashboard/texts/{conversation}", {"body": "hush"})
    path, updated = f"/v1/sms/conversations/{conversation}", AuditAction.SMS_CONVERSATION_UPDATED
    await at.api(updated, "PATCH", path, {"resolved": True})
    await at.dashboard(updated, f"/dashboard/texts/{conversation}/assignment", {"act": "reopen"})
    agent = str((await at.caller.post("/v1/agents", {"name": "Agent"})).json["id"])
    await at.expect([(f"key:{at.caller.key_id}", AuditAction.AGENT_CREATED)], "agent")
    call = {"agent_id": agent, "from_number_id": number, "to_number": "+15550100001"}
    call_id = await at.api(AuditAction.CALL_CREATED, "POST", "/v1/calls", call)
    await at.dashboard(AuditAction.CALL_CREATED, "/dashboard/calls/new", {**call})
    await at.dashboard(AuditAction.CALL_CREATED, f"/dashboard/agents/{agent}/call", {**call})
    await at.dashboard(AuditAction.CALL_MONITORED, f"/dashboard/live/{call_id}/ticket")
    await at.api(AuditAction.PHONE_NUMBER_RELEASED, "DELETE", f"/v1/phone-numbers/{number}")
    await at.dashboard(AuditAction.PHONE_NUMBER_RELEASED, f"{page}/{other}/release")


async def _campaigns(at: Organization) -> None:
    organization = await create_bakery(at.runtime, at.caller, fresh_number())
    await at.expect([], "effects of a transaction without an actor")
    means = {"name": "Reminders", "agent_id": organization.agent_id, "phone_number_id": organization.number_id}
    body = {**means, "contacts": PEOPLE}
    paths = "/v1/campaigns", "/dashboard/campaigns"
    campaign = await at.api(AuditAction.CAMPAIGN_CREATED, "POST", paths[0], body)
    await at.api(AuditAction.CAMPAIGN_STARTED, "POST", f"{paths[0]}/{campaign}/start")
    await at.api(AuditAction.CAMPAIGN_PAUSED, "POST", f"{paths[0]}/{campaign}/pause")
    await at.api(AuditAction.CAMPAIGN_RESUMED, "POST", f"{paths[0]}/{campaign}/resume")
    await at.api(AuditAction.CAMPAIGN_CANCELED, "POST", f"{paths[0]}/{campaign}/cancel")
    await at.dashboard(AuditAction.CAMPAIGN_DELETED, f"{paths[1]}/{campaign}/delete")
    fields: Fields = {**means, "max_concurrent": "3", "retry.attempts": "0", "people": "+15550100020, Ada"}
    await at.dashboard(AuditAction.CAMPAIGN_CREATED, f"{paths[1]}/new", fields)
    campaign = await at.only(paths[0])
    page = f"{paths[1]}/{campaign}"
    await at.dashboard(AuditAction.CAMPAIGN_UPDATED, f"{page}/edit", {**fields, "name": "hush"})
    await at.dashboard(AuditAction.CAMPAIGN_CONTACTS_ADDED, f"{page}/people", {"people": "+15550100021, hush"})
    await at.dashboard(AuditAction.CAMPAIGN_STARTED, f"{page}/start")
    await at.dashboard(AuditAction.CAMPAIGN_PAUSED, f"{page}/pause")
    await at.dashboard(AuditAction.CAMPAIGN_RESUMED, f"{page}/resume")
    await at.dashboard(AuditAction.CAMPAIGN_CANCELED, f"{page}/cancel")
    await at.api(AuditAction.CAMPAIGN_DELETED, "DELETE", f"{paths[0]}/{campaign}")


async def _automations(at: Organization) -> None:
    body = {"name": "Tag", "trigger_type": "sms.sent", "actions": [ACTION]}
    paths = "/v1/automations", "/dashboard/automations"
    automation = await at.api(AuditAction.AUTOMATION_CREATED, "POST", paths[0], body)
    await at.api(AuditAction.AUTOMATION_UPDATED, "PATCH", f"{paths[0]}/{automation}", {"name": "hush"})
    page = f"{paths[1]}/{automation}"
    await at.dashboard(AuditAction.AUTOMATION_UPDATED, page, {**ACTION_FIELDS, "name": "hush again"})
    await at.dashboard(AuditAction.AUTOMATION_UPDATED, f"{page}/enabled", {"enabled": "false"})
    run = await at.fail_run(automation)
    await at.api(AuditAction.AUTOMATION_RUN_RETRIED, "POST", f"{paths[0]}/{automation}/runs/{run}/retry")
    run = await at.fail_run(automation)
    await at.dashboard(AuditAction.AUTOMATION_RUN_RETRIED, f"{page}/runs/{run}/retry")
    await at.api(AuditAction.AUTOMATION_DELETED, "DELETE", f"{paths[0]}/{automation}")
    await at.dashboard(AuditAction.AUTOMATION_CREATED, f"{paths[1]}/new", ACTION_FIELDS)
    automation = await at.only(paths[0])
    await at.dashboard(AuditAction.AUTOMATION_DELETED, f"{paths[1]}/{automation}/delete")


async def test_effects_of_only_the_dashboard_record_one_entry_each(organization: Organization, people: People) -> None:
    at = organization
    await at.dashboard(
        AuditAction.API_KEY_CREATED, "/dashboard/keys/new", {"name": "hush", "scopes[]": ["agents:read"]}
    )
    (entry,) = [
        entry for entry in await at.entries() if entry.action == "api_key.created" and entry.actor != "operator"
    ]
    key = entry.subject.partition(" ")[0]
    await at.dashboard(AuditAction.API_KEY_ROTATED, f"/dashboard/keys/{key}/rotate", {"hours": "24"})
    await at.dashboard(AuditAction.API_KEY_REVOKED, f"/dashboard/keys/{key}/revoke")
    invitation: Fields = {"email": "hush@example.com", "role": "builder"}
    await at.dashboard(AuditAction.INVITATION_CREATED, "/dashboard/team", invitation)
    invited = (await at.entries())[-1].subject.partition(" ")[0]
    await at.dashboard(AuditAction.INVITATION_WITHDRAWN, f"/dashboard/team/invitations/{invited}/withdraw")
    colleague = await people.join(at.caller.organization_id, role="builder")
    member = f"/dashboard/team/{colleague.user_id}"
    await at.dashboard(AuditAction.MEMBER_ROLE_CHANGED, f"{member}/role", {"role": "owner"})
    await at.dashboard(AuditAction.MEMBER_REMOVED, f"{member}/remove")
    providers = "/dashboard/providers/llm"
    await at.dashboard(AuditAction.PROVIDER_SAVED, f"{providers}/openai", {"settings.api_key": "hush"})
    await at.dashboard(AuditAction.PROVIDER_MOVED, f"{providers}/openai/up")
    await at.dashboard(AuditAction.PROVIDER_REMOVED, f"{providers}/openai/remove")
    await at.dashboard(AuditAction.USER_SESSIONS_ENDED, "/dashboard/account/sessions/end")
    secret = pyotp.random_base32()
    app: Fields = {"secret": secret, "code": pyotp.TOTP(secret).now(), "password": PASSWORD}
    await at.dashboard(AuditAction.USER_SECOND_FACTOR_ADDED, "/dashboard/account/second-factor", app)
    later: Fields = {"code": pyotp.TOTP(secret).at(now(), counter_offset=1)}
    await at.dashboard(AuditAction.USER_SECOND_FACTOR_REMOVED, "/dashboard/account/second-factor/remove", later)
    passwords: Fields = {"current": PASSWORD, "new": "hush, a long password"}
    await at.dashboard(AuditAction.USER_PASSWORD_CHANGED, "/dashboard/account/password", passwords)
    assert not any("hush" in entry.subject for entry in await at.entries()), "an entry holds a value"


async def test_a_refused_request_records_nothing(organization: Organization) -> None:
    at = organization
    assert (await at.caller.post("/v1/contacts", {"phone_number": "12"})).status == 422
    assert (await at.caller.send("DELETE", f"/v1/contacts/{uuid4()}")).status == 404
    assert (await at.owner.post("/dashboard/contacts/new", {"phone_number": "12"})).status == 422
    assert (await at.owner.post(f"/dashboard/contacts/{uuid4()}/delete")).status == 404
    await at.expect([], "refused requests")


async def test_a_superadmins_changes_to_oauth_clients_are_recorded(
    runtime: Runtime, caller: Caller, people: People
) -> None:
    at = Organization(runtime, caller, await people.join(caller.organization_id, superadmin=True))
    at.seen = {entry.id for entry in await at.entries()}
    await at.owner.post(f"/dashboard/organizations/{caller.organization_id}")
    fields: Fields = {"name": "hush", "redirect_uris": "https://app.example/callback"}
    await at.dashboard(AuditAction.OAUTH_CLIENT_CREATED, "/dashboard/oauth-clients/new", fields)
    client = (await at.entries())[-1].subject.partition(" ")[0]
    page = f"/dashboard/oauth-clients/{client}"
    await at.dashboard(AuditAction.OAUTH_CLIENT_UPDATED, page, fields)
    await at.dashboard(AuditAction.OAUTH_CLIENT_SECRET_ROTATED, f"{page}/rotate-secret")
    await at.dashboard(AuditAction.OAUTH_CLIENT_DELETED, f"{page}/delete")


async def test_actions_are_dotted_names_of_a_resource_and_an_effect() -> None:
    for action in AuditAction:
        resource, effect = action.value.split(".")
        assert action.name == f"{resource}_{effect}".upper()
