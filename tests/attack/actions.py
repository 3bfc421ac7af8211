"""Scopes and destinations by way of others: automations, agents, campaigns, and the dashboard's forms."""

from itertools import product

from tests.attack.oauth_client import Application
from tests.attack.organization import PERSON
from tests.attack.report import AttackResult
from tests.attack.scene import Scene
from tests.fixtures.eventually import eventually

ACTIONS = {
    "send_sms": ("sms:write", ("from_number_id", "to_number", "body")),
    "start_call": ("calls:write", ("agent_id", "from_number_id", "to_number")),
    "http_request": ("webhooks:write", ("url",)),
    "upsert_contact": ("contacts:write", ("phone_number",)),
    "tag_contact": ("contacts:write", ("phone_number", "tag")),
}
"""The scope of each built-in action that needs one, and its required parameters."""
TOOL = {"name": "find_order", "description": "Find an order.", "url": "https://example.com/orders"}
RECEIVERS: tuple[dict[str, object], ...] = (
    {"tools": [TOOL]},
    {"webhook_url": "https://example.com/mine"},
    {"webhook_secret": "mine"},
)
FRAUD = (
    "+449098790000",
    "+19005550100",
    "+97912345678",
    "+491805123456",
    "+447012345678",
    "+881612345678",
    "+870776543210",
    "+88213123456789",
    "+8835100012345",
)
"""Premium-rate, shared-cost, personal, and satellite numbers."""


UNDER_WAY = ("scheduled", "running")


async def attack_actions(scene: Scene, result: AttackResult) -> None:
    """Write automations and agents with credentials that lack the scope of what these do."""
    stranger = scene.stranger
    narrow = stranger.api.with_token(await stranger.create_key("campaigns:write"))
    agents = stranger.api.with_token(await stranger.create_key("agents:write"))
    application = Application(scene, scene.credentials.application)
    scope = "campaigns:write agents:write agents:read webhooks:write"
    members = (await application.obtain_tokens(stranger.member, scope=scope))["access_token"]
    holders = [("a narrow key", narrow), ("a member's application", stranger.api.with_token(members))]
    harmless = {"type": "wait", "params": {"seconds": 60}}
    kept = await stranger.api.post(
        "/v1/automations", {"name": "Own", "trigger_type": "call.completed", "actions": [harmless]}
    )
    path = f"/v1/automations/{kept.json['id']}" if kept.status == 201 else ""
    for (name, (_, required)), (holder_name, holder) in product(ACTIONS.items(), holders):
        action = {"type": name, "params": dict.fromkeys(required, "{{ data.nothing }}")}
        body = {"name": "x", "trigger_type": "call.completed", "actions": [action]}
        tried = [await holder.post("/v1/automations", body)]
        if path:
            tried.append(await holder.send("PATCH", path, {"actions": [action]}))
        for answer in tried:
            result.check(answer.status == 403, f"automation with {name} by {holder_name}", answer)
    for given in RECEIVERS:
        if "tools" in given:
            answer = await agents.post("/v1/agents", {"name": "x", **given})
            result.check(answer.status == 403, "tools by a key with agents:write", answer)
        answer = await holders[1][1].post("/v1/agents", {"name": "x", **given})
        result.check(answer.status == 403, f"agent with {given} by a member's application", answer)
        form = {"name": "x", **{key: str(value) for key, value in given.items() if isinstance(value, str)}}
        form |= {f"tools.0.{key}": value for key, value in TOOL.items()} if "tools" in given else {}
        answer = await stranger.member.submit("/dashboard/agents/new", form)
        result.check(answer.status == 403, f"agent with {given} by a member", answer)
    form = {"name": "x", "enabled": "true", "trigger_type": "sms.received", "actions.0.type": "http_request"}
    answer = await stranger.member.submit(
        "/dashboard/automations/new", {**form, "actions.0.params.url": "https://example.com/mine"}
    )
    result.check(answer.status == 403, "automation with http_request by a member", answer)
    await _attack_foreign_params(scene, result)


async def _attack_foreign_params(scene: Scene, result: AttackResult) -> None:
    """Name rows of another organization in the parameters of actions, which no schema describes."""
    victim, stranger = scene.victim, scene.stranger
    campaign, agent, number = (victim.find_id(name) for name in ("campaign_id", "agent_id", "from_number_id"))
    own = {"agent_id": stranger.find_id("agent_id"), "from_number_id": stranger.find_id("from_number_id")}
    actions: list[tuple[str, dict[str, object]]] = [
        ("start_call", {**own, "agent_id": agent, "to_number": PERSON}),
        ("start_call", {**own, "from_number_id": number, "to_number": PERSON}),
        ("send_sms", {"from_number_id": number, "to_number": PERSON, "body": "x"}),
        ("add_to_campaign", {"campaign_id": campaign, "phone_number": PERSON}),
    ]
    made = []
    for name, params in actions:
        body = {"name": name, "trigger_type": "sms.sent", "actions": [{"type": name, "params": params}]}
        answer = await stranger.api.post("/v1/automations", body)
        result.check(answer.status in (201, 422), f"{name} with foreign ids", answer)
        made += [answer.json["id"]] if answer.status == 201 else []
    sent = {"from_number_id": own["from_number_id"], "to_number": PERSON, "body": "x"}
    await stranger.api.post("/v1/sms", sent)
    for automation in made:
        path = f"/v1/automations/{automation}"
        run = await stranger.wait_for_run(path)
        result.check(run["status"] == "failed", "run with foreign ids", run)
        await stranger.api.send("DELETE", path)


async def attack_destinations(scene: Scene, result: AttackResult) -> None:
    """Call, text, and forward to numbers that cost most, by each way that takes a number."""
    stranger = scene.stranger
    agent, number = stranger.find_id("agent_id"), stranger.find_id("from_number_id")
    for to_number in FRAUD:
        call = {"agent_id": agent, "from_number_id": number, "to_number": to_number}
        text = {"from_number_id": number, "to_number": to_number, "body": "x"}
        for request, answer in (
            ("call", await stranger.api.post("/v1/calls", call)),
            ("text message", await stranger.api.post("/v1/sms", text)),
            ("forward", await stranger.api.send("PUT", f"/v1/phone-numbers/{number}", {"forward_number": to_number})),
        ):
            code = answer.json.get("code")
            result.check((answer.status, code) == (403, "destination_not_allowed"), f"{request} {to_number}", answer)
        for page, form in (("calls", call), ("texts", text)):
            answer = await stranger.member.submit(f"/dashboard/{page}/new", {**form})
            result.check(answer.status in (403, 422), f"/dashboard/{page}/new {to_number}", answer)
    await _attack_by_campaign(scene, result)
    calls = (await stranger.api.get("/v1/calls?limit=100")).json["items"]
    placed = [call for call in calls if call["to_number"] in FRAUD and call["started_at"]]
    result.check(not placed, "calls to closed numbers", placed)


async def _attack_by_campaign(scene: Scene, result: AttackResult) -> None:
    """Start a campaign with closed numbers, and wait until nobody is left to call."""
    api = scene.stranger.api
    contacts = [{"phone_number": number} for number in FRAUD]
    own = {"agent_id": scene.stranger.find_id("agent_id"), "phone_number_id": scene.stranger.find_id("from_number_id")}
    made = await api.post("/v1/campaigns", {"name": "Fraud", **own, "contacts": contacts})
    if made.status != 201:
        result.check(made.status in (403, 422), "campaign", made)
        return
    path = f"/v1/campaigns/{made.json['id']}"
    await api.post(f"{path}/start")
    await eventually(lambda: api.get(path), lambda answer: answer.json["status"] not in UNDER_WAY)
    called = [row for row in (await api.get(f"{path}/contacts")).json["items"] if row["status"] == "completed"]
    result.check(not called, "contacts of a campaign", called)
    await api.post(f"{path}/cancel")
