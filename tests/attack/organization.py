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
PERSON, LISTENER = "+15550100001", "+15550100040"
"""Numbers of the loopback carrier's simulated people."""
VOLATILE = ("/v1/usage", "/v1/analytics", "/v1/billing", "/v1/webhook-deliveries", "/v1/browser-call")
"""Operations whose responses change by themselves."""
CONFLICT = 409
"""Status for a row that an earlier run has left."""
RUNNING = ("running", "waiting", "pending")
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
            if not operation.path.startswith(VOLATILE) and not path.endswith("/recording-url")
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

    canary, owner, member = f"canary{secrets.token_hex(8)}", open_browser(), open_browser()
    signed_in = await owner.sign_in(credentials.email, credentials.password)
    assert signed_in.status == 303, f"the owner cannot sign in: {signed_in}"
    email = f"{canary}@example.com"
    invited = await owner.submit("/dashboard/team", {"email": email, "role": "member"})
    link = find_match(re.compile(r"/dashboard/invitations/[\w-]+"), invited)
    accepted = await member.send("POST", link, form={"password": PASSWORD})
    assert accepted.status == 303, accepted
    client = open_browser().with_token(credentials.api_key)
    operations = [operation for operation, _ in list_operations(api)]
    nobody.watch.words[name] = canary
    return Organization(name, canary, credentials, client, owner, member, email, operations)


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
    number = (await buy_number(organization, agent))["id"]
    await create("/v1/widgets", {"name": canary, "agent_id": agent})
    await create("/v1/contacts", {"phone_number": PERSON, "name": canary, "notes": canary})
    await create("/v1/do-not-call", {"phone_number": "+15550100099", "note": canary})
    await create("/v1/integrations", {"partner_api_key": canary}, method="PUT")
    endpoint = (await create("/v1/webhook-endpoints", {"url": f"https://example.com/{canary}", "description": canary}))[
        "id"
    ]
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
    base = (await create("/v1/knowledge-bases", {"name": canary, "description": canary}))["id"]
    document = {"filename": f"{canary}.txt", "content": f"{canary} is open from seven to six."}
    await create(f"/v1/knowledge-bases/{base}/documents", document)
    call = {"agent_id": agent, "from_number_id": number, "to_number": LISTENER, "metadata": {"word": canary}}
    placed = (await create("/v1/calls", call))["id"]

    async def read_call() -> Json:
        found: Json = (await organization.api.get(f"/v1/calls/{placed}")).json
        return found

    await eventually(read_call, lambda call: call["ended_at"] and call["recording_url"], seconds=CALL_SECONDS)
    ids.clear()
    await organization.collect_ids()
    await wait_until_quiet(organization)


async def buy_number(organization: Organization, agent: str) -> Json:
    """Buy the last offered number that nobody else has or buys: tests of carriers buy the first ones."""
    offers = await organization.api.post("/v1/phone-numbers/search", {"country": "US"})
    for offer in reversed(offers.json["items"]):
        wanted = {"phone_number": offer["phone_number"], "inbound_agent_id": agent}
        bought = await organization.api.post("/v1/phone-numbers", {**wanted, "friendly_name": organization.canary})
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
