"""An organization under attack: its credentials, browsers, rows, and a random word in each of its texts."""

import asyncio
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from switchboard.foundation.web.openapi import Json

from tests.attack.credentials import OrganizationCredentials
from tests.attack.http_client import Answer, HttpClient
from tests.fixtures.eventually import eventually
from tests.fixtures.openapi_places import Operation, find_collection, list_operations

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
API_KEY = re.compile(r"svc_live_\w+")
PASSWORD = secrets.token_urlsafe(18)
"""Password of the members that the attacks create."""
PERSON, LISTENER, PHOTOGRAPHER = "+15550100001", "+15550100040", "+15550100083"
"""Numbers of the loopback carrier's simulated people; the photographer replies to text messages with a picture."""
VIEW_QUERY = "status=busy"
"""Filters of the list of calls that each organization has saved as a view."""
VOLATILE = ("/v1/usage", "/v1/analytics", "/v1/billing", "/v1/webhook-deliveries", "/v1/browser-call")
"""Operations whose responses change by themselves."""
CONFLICT = 409
"""Status for a row that an earlier run has left."""
RUNNING = ("running", "waiting", "pending")
SIGNED = ("/recording-url", "/export-url", "/url", "/availability")
"""Endings of the paths of signed links and of tokens, which differ from one read to the next."""
CALL_SECONDS, RUN_SECONDS = 120, 60


@dataclass(slots=True)
class Organization:
    """One of the two organizations; `ids` has the ids of its rows by the last name of their collection's path."""

    name: str
    canary: str
    credentials: OrganizationCredentials
    api: HttpClient
    owner: HttpClient
    member: HttpClient
    member_email: str
    operations: list[Operation]
    ids: dict[str, list[str]] = field(default_factory=dict)

    def find_id(self, name: str) -> str:
        """Return the id of a row for a field or a path's parameter; an unknown id if there is none."""
        collection = find_collection(name, self.ids)
        return self.ids[collection][0] if collection is not None else str(uuid4())

    async def create_key(self, scope: str) -> str:
        """Create an API key in the dashboard."""
        made = await self.owner.submit("/dashboard/keys/new", {"name": f"{self.canary} {scope}", "scopes[]": scope})
        return find_match(API_KEY, made)

    async def revoke_newest_key(self) -> None:
        page = (await self.owner.get("/dashboard/keys")).text
        revoked = await self.owner.submit(
            f"/dashboard/keys/{find_text(r'/dashboard/keys/([0-9a-f-]{36})/', page)}/revoke"
        )
        assert revoked.status == 303, revoked

    async def wait_for_run(self, automation: str) -> Json:
        """Wait until the newest run of an automation, given by its path, is over."""

        async def read_run() -> Json | None:
            items = (await self.api.get(f"{automation}/runs")).json["items"]
            return items[0] if items else None

        run = await eventually(read_run, lambda run: run and run["status"] not in RUNNING, seconds=RUN_SECONDS)
        assert run is not None
        return run

    async def read_rows(self) -> dict[str, str]:
        """Read everything that the API shows of the organization and that does not change by itself."""
        paths = [
            path
            for operation, path in self.iterate_reads()
            if not operation.path.startswith(VOLATILE) and not path.endswith(SIGNED)
        ]
        answers = await asyncio.gather(*map(self.api.get, paths))
        return {path: answer.text for path, answer in zip(paths, answers, strict=True) if answer.status == 200}

    def iterate_reads(self) -> Iterator[tuple[Operation, str]]:
        """Yield each operation that reads, with its path for each row."""
        for operation in self.operations:
            if operation.method != "GET":
                continue
            path, _, rest = operation.path.rpartition("{")
            if not path:
                yield operation, operation.path
            for key in self.ids.get(path.rstrip("/").rsplit("/", 1)[-1], []) if path else []:
                start, _ = Operation("GET", path, None, None).fill(self.find_id)
                yield operation, start + key + rest.partition("}")[2]

    async def collect_ids(self) -> None:
        """Collect the ids of all rows from the lists of the API, those of rows of rows after those of rows."""
        reads = [operation for operation in self.operations if operation.method == "GET"]
        for operation in sorted(reads, key=lambda operation: operation.path.count("{")):
            path, _ = operation.fill(self.find_id)
            answer = await self.api.get(path)
            items: Any = answer.json
            items = items.get("items", []) if isinstance(items, dict) else items
            found = [item["id"] for item in items if isinstance(item, dict) and "id" in item]
            if found:
                self.ids.setdefault(path.rsplit("/", 1)[1], []).extend(found)


def find_match(pattern: re.Pattern[str], answer: Answer) -> str:
    """Return what a pattern finds in a response. Raises `AssertionError` with the response."""
    found = pattern.search(answer.text)
    assert found, f"no {pattern.pattern} in {answer}"
    return found[0]


def find_text(pattern: str, text: str) -> str:
    """Return the first group of a pattern."""
    found = re.search(pattern, text)
    assert found, f"no {pattern} in {text[:500]}"
    return found[1]


async def open_organization(
    name: str, credentials: OrganizationCredentials, nobody: HttpClient, api: Json
) -> Organization:
    """Sign in its owner, and invite a member, who accepts."""

    def open_browser() -> HttpClient:
        return HttpClient(nobody.base_url, name, nobody.watch, nobody.session)

    canary, owner = f"canary{secrets.token_hex(8)}", open_browser()
    signed_in = await owner.sign_in(credentials.email, credentials.password)
    assert signed_in.status == 303, f"the owner cannot sign in: {signed_in}"
    client = open_browser().with_token(credentials.api_key)
    operations = [operation for operation, _ in list_operations(api)]
    nobody.watch.words[name] = canary
    nobody.watch.secrets.append(credentials.api_key)
    member, member_email = await join(owner, canary, "builder")
    return Organization(name, canary, credentials, client, owner, member, member_email, operations)


async def join(owner: HttpClient, canary: str, role: str) -> tuple[HttpClient, str]:
    """Invite a user, who accepts, and return the user's browser and address, which has the organization's word."""
    email = f"{canary}-{role}-{secrets.token_hex(3)}@example.com"
    invited = await owner.submit("/dashboard/team", {"email": email, "role": role})
    link = find_match(re.compile(r"/dashboard/invitations/[\w-]+"), invited)
    browser = HttpClient(owner.base_url, owner.reader, owner.watch, owner.session)
    accepted = await browser.send("POST", link, form={"password": PASSWORD})
    assert accepted.status == 303, accepted
    return browser, email


async def populate(organization: Organization) -> None:
    """Create a row of each kind, with the organization's word in each text, and wait until nothing changes."""
    canary, ids = organization.canary, organization.ids

    async def create(path: str, body: Json, *, method: str = "POST") -> Json:
        answer = await organization.api.send(method, path, body)
        assert answer.status in (200, 201, CONFLICT), f"{method} {path}: {answer}"
        made: Json = answer.json
        if "id" in made:
            ids.setdefault(path.rsplit("/", 1)[1], []).append(made["id"])
        return made

    agent = (await create("/v1/agents", {"name": canary, "system_prompt": canary, "greeting_message": canary}))["id"]
    number = (await buy_number(organization))["id"]
    media = await receive_picture(organization, number)
    await create(f"/v1/phone-numbers/{number}", {"inbound_agent_id": agent}, method="PUT")
    await create("/v1/widgets", {"name": canary, "agent_id": agent})
    await create("/v1/contacts", {"phone_number": PERSON, "name": canary, "notes": canary})
    await create("/v1/do-not-call", {"phone_number": "+15550100099", "note": canary})
    partner_key = secrets.token_hex(16)
    await create("/v1/integrations", {"partner_api_key": partner_key}, method="PUT")
    made = await create("/v1/webhook-endpoints", {"url": f"https://example.com/{canary}", "description": canary})
    endpoint = made["id"]
    organization.api.watch.secrets += [partner_key, made["secret"]]
    await create(f"/v1/webhook-endpoints/{endpoint}/test", {})
    await create(f"/v1/webhook-endpoints/{endpoint}", {"enabled": False}, method="PATCH")
    tag = {"type": "tag_contact", "params": {"phone_number": "{{ data.to_number }}", "tag": canary}}
    await create("/v1/automations", {"name": canary, "trigger_type": "sms.sent", "actions": [tag]})
    await create("/v1/sms", {"from_number_id": number, "to_number": PERSON, "body": canary})
    contacts = [{"phone_number": PERSON, "name": canary}]
    campaign = {"name": canary, "agent_id": agent, "phone_number_id": number, "contacts": contacts}
    await create("/v1/campaigns", campaign)
    simulation = {"name": canary, "lines": [canary], "assertions": [{"type": "said", "text": canary}]}
    await create(f"/v1/agents/{agent}/simulations", simulation)
    await create_appointment_type(organization)
    base = (await create("/v1/knowledge-bases", {"name": canary, "description": canary}))["id"]
    document = {"filename": f"{canary}.txt", "content": f"{canary} is open from seven to six."}
    await create(f"/v1/knowledge-bases/{base}/documents", document)
    call = {"agent_id": agent, "from_number_id": number, "to_number": LISTENER, "metadata": {"word": canary}}
    placed = (await create("/v1/calls", call))["id"]
    await create(f"/v1/agents/{agent}/draft", {"revision": None, "changes": {"greeting_message": canary}}, method="PUT")
    export = (await create("/v1/privacy-requests", {"kind": "export", "phone_number": PERSON}))["id"]

    async def read(path: str) -> Json:
        found: Json = (await organization.api.get(path)).json
        return found

    await eventually(
        lambda: read(f"/v1/calls/{placed}"),
        lambda call: call["ended_at"] and call["recording_url"],
        seconds=CALL_SECONDS,
    )
    await eventually(lambda: read(f"/v1/privacy-requests/{export}"), lambda request: request["status"] == "completed")
    view = await save_view(organization)
    ids.clear()
    await organization.collect_ids()
    ids["media"], ids["views"] = [media], [view]
    team = (await organization.owner.get("/dashboard/team")).text
    ids["users"] = sorted(set(re.findall(r"/dashboard/team/([0-9a-f-]{36})/", team)))
    await wait_until_quiet(organization)


async def create_appointment_type(organization: Organization) -> None:
    """Create an appointment type in a calendar that needs no account."""
    made = await organization.api.post("/v1/calendars", {"provider": "local", "name": organization.canary})
    assert made.status == 201, made
    hours = {"slots": [{"days": ["mon", "tue", "wed"], "start": "09:00", "end": "17:00"}]}
    fields = {"name": organization.canary, "calendar_ids": [made.json["id"]], "hours": hours}
    made = await organization.api.post("/v1/appointment-types", fields)
    assert made.status == 201, made


async def receive_picture(organization: Organization, number: str) -> str:
    """Have the simulated photographer answer a text message, and return the id of the picture.

    A member has the conversation by the time when the number gets its agent: the photographer and an agent would answer
    each other without end.
    """
    text = {"from_number_id": number, "to_number": PHOTOGRAPHER, "body": organization.canary}
    sent = await organization.api.post("/v1/sms", text)
    assert sent.status == 201, sent

    conversation = f"/v1/sms/conversations/{sent.json['conversation_id']}"

    async def find_pictures() -> list[str]:
        messages = (await organization.api.get(f"{conversation}/messages")).json["items"]
        return [url for message in messages for url in message["media_urls"]]

    (picture,) = await eventually(find_pictures, bool, seconds=CALL_SECONDS)
    member = find_text(r"/dashboard/team/([0-9a-f-]{36})/", (await organization.owner.get("/dashboard/team")).text)
    assigned = await organization.api.send("PATCH", conversation, {"assigned_to": member})
    assert assigned.status == 200, assigned
    return picture.rpartition("/")[2]


async def save_view(organization: Organization) -> str:
    """Save a view of the list of calls, and return its id."""
    saved = await organization.owner.submit(
        "/dashboard/calls/views", {"name": organization.canary, "query": VIEW_QUERY}
    )
    assert saved.status == 303, saved
    page = (await organization.owner.get(f"/dashboard/calls?{VIEW_QUERY}")).text
    return find_text(r"/dashboard/calls/views/([0-9a-f-]{36})/delete", page)


async def buy_number(organization: Organization) -> Json:
    """Buy the last offered number that nobody else has or buys: tests of carriers buy the first ones."""
    offers = await organization.api.post("/v1/phone-numbers/search", {"country": "US"})
    for offer in reversed(offers.json["items"]):
        wanted = {"phone_number": offer["phone_number"], "friendly_name": organization.canary}
        bought = await organization.api.post("/v1/phone-numbers", wanted)
        if bought.status == 201:
            number: Json = bought.json
            return number
    raise AssertionError(f"no number can be bought: {offers}")


async def wait_until_quiet(organization: Organization) -> dict[str, str]:
    """Wait until two reads a second apart are the same, and return them."""
    before: dict[str, str] = {}
    while (rows := await organization.read_rows()) != before:
        before = rows
        await asyncio.sleep(1)
    return rows
