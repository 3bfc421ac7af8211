"""Drafts of agents through the API: saved, tested, and published, and never over another editor's changes."""

import pytest
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller
from tests.fixtures.json_access import Json, at
from tests.fixtures.simulations import run_simulation

SIMULATION: Json = {"name": "Greets", "lines": ["Hello"], "assertions": [{"type": "said", "text": "Good day"}]}
SCRIPT = 'When the caller says "hello": say "{}"'


async def create_agent(caller: Caller, **fields: object) -> str:
    """Create an agent, and return its path."""
    response = await caller.post("/v1/agents", {"name": "Front desk", "greeting_message": "Hello", **fields})
    assert response.status == 201, response.body
    return f"/v1/agents/{response.json['id']}"


async def save_draft(caller: Caller, path: str, revision: object = None, **changes: object) -> Json:
    response = await caller.send("PUT", f"{path}/draft", {"revision": revision, "changes": changes})
    assert response.status == 200, response.body
    return response.json


async def simulate(runtime: Runtime, caller: Caller, path: str, **fields: object) -> Json:
    """Run a simulation of an agent as a worker does; return it."""
    created = await caller.post(f"{path}/simulations", {**SIMULATION, **fields})
    assert created.status == 201, created.body
    return await run_simulation(runtime, caller, path.rpartition("/")[2], str(created.json["id"]))


async def test_a_draft_is_saved_published_and_gone(caller: Caller) -> None:
    path = await create_agent(caller)
    assert (await caller.get(f"{path}/draft")).status == 404
    draft = await save_draft(caller, path, name="Front desk", greeting_message="Good day", timezone="Europe/Berlin")
    assert draft["changes"] == {"greeting_message": "Good day", "timezone": "Europe/Berlin"}, "only what differs"
    assert (draft["base_version"], draft["is_outdated"]) == (1, False)
    assert (await caller.get(f"{path}/draft")).json == draft
    assert (await caller.get(path)).json["greeting_message"] == "Hello", "calls use the published agent"
    assert (await save_draft(caller, path, draft["revision"], **draft["changes"]))["revision"] == draft["revision"]
    published = await caller.post(f"{path}/draft/publish", {"revision": draft["revision"]})
    assert (published.status, published.json["version"], published.json["greeting_message"]) == (200, 2, "Good day")
    assert (await caller.get(f"{path}/draft")).status == 404
    versions = (await caller.get(f"{path}/versions")).json
    assert at(versions, "items", 0, "settings", "timezone") == "Europe/Berlin"


async def test_a_draft_is_discarded(caller: Caller) -> None:
    path = await create_agent(caller)
    draft = await save_draft(caller, path, name="Night desk")
    assert (await caller.send("DELETE", f"{path}/draft")).status == 204
    assert (await caller.send("DELETE", f"{path}/draft")).status == 404
    assert (await caller.post(f"{path}/draft/publish", {"revision": draft["revision"]})).status == 404
    assert (await caller.get(path)).json["version"] == 1


async def test_two_editors_do_not_overwrite_each_other(caller: Caller) -> None:
    path = await create_agent(caller)
    first = await save_draft(caller, path, name="First")
    for revision in (None, UNKNOWN_ID, "no id"):
        body = {"revision": revision, "changes": {"name": "Second"}}
        assert (await caller.send("PUT", f"{path}/draft", body)).status == 409
    second = await save_draft(caller, path, first["revision"], name="Second")
    refused = await caller.post(f"{path}/draft/publish", {"revision": first["revision"]})
    assert (refused.status, refused.json["code"]) == (409, "conflict")
    assert (await caller.post(f"{path}/draft/publish", {"revision": second["revision"]})).json["name"] == "Second"
    late = await caller.send("PUT", f"{path}/draft", {"revision": second["revision"], "changes": {"name": "Third"}})
    assert (late.status, "published or discarded" in str(late.json["detail"])) == (409, True)


async def test_a_draft_of_an_older_version_is_saved_again_before_it_is_published(caller: Caller) -> None:
    path = await create_agent(caller)
    draft = await save_draft(caller, path, greeting_message="Good day")
    await caller.send("PUT", path, {"status": "paused"})
    assert (await caller.get(f"{path}/draft")).json["is_outdated"] is False, "a pause changes no setting"
    await caller.send("PUT", path, {"voice_speed": 1.2})
    assert (await caller.get(f"{path}/draft")).json["is_outdated"] is True
    refused = await caller.post(f"{path}/draft/publish", {"revision": draft["revision"]})
    assert (refused.status, "Version 3 was published" in str(refused.json["detail"])) == (409, True)
    again = await save_draft(caller, path, draft["revision"], greeting_message="Good day")
    assert (again["is_outdated"], again["revision"] != draft["revision"]) == (False, True)
    published = (await caller.post(f"{path}/draft/publish", {"revision": again["revision"]})).json
    assert (published["voice_speed"], published["greeting_message"]) == (1.2, "Good day")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"llm_provider": "nobody"}, "llm_provider"),
        ({"voice_speed": 9}, "changes.voice_speed"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"status": "paused"}, "changes.status"),
        ({"webhook_secret": "hush"}, "changes.webhook_secret"),
        ({"required_simulations": []}, "changes.required_simulations"),
    ],
)
async def test_a_draft_is_checked_like_an_agent(caller: Caller, changes: Json, field: str) -> None:
    path = await create_agent(caller)
    refused = await caller.send("PUT", f"{path}/draft", {"revision": None, "changes": changes})
    assert (refused.status, at(refused.json, "errors", 0, "field")) == (422, field)


async def test_a_draft_that_lost_its_knowledge_base_is_published_without(caller: Caller) -> None:
    path = await create_agent(caller)
    base = (await caller.post("/v1/knowledge-bases", {"name": "Menu"})).json["id"]
    draft = await save_draft(caller, path, knowledge_base_ids=[base])
    await caller.send("DELETE", f"/v1/knowledge-bases/{base}")
    published = await caller.post(f"{path}/draft/publish", {"revision": draft["revision"]})
    assert (published.status, published.json["knowledge_base_ids"]) == (200, [])


async def test_a_simulation_tests_the_draft_as_it_was_saved(caller: Caller, runtime: Runtime) -> None:
    path = await create_agent(caller, system_prompt=SCRIPT.format("Hi"))
    assert (await caller.post(f"{path}/simulations", {**SIMULATION, "target": "draft"})).status == 404
    draft = await save_draft(caller, path, system_prompt=SCRIPT.format("Good day"))
    assert (await simulate(runtime, caller, path))["status"] == "failed", "the published agent"
    done = await simulate(runtime, caller, path, target="draft")
    assert (done["status"], done["draft_revision"]) == ("passed", draft["revision"])
    late = (await caller.post(f"{path}/simulations", {**SIMULATION, "target": "draft"})).json["id"]
    await save_draft(caller, path, draft["revision"], system_prompt=SCRIPT.format("Bye"))
    done = await run_simulation(runtime, caller, path.rpartition("/")[2], str(late))
    assert (done["status"], "the draft was changed" in str(done["error_message"])) == ("error", True)
    audio = await caller.post(f"{path}/simulations", {**SIMULATION, "target": "draft", "mode": "audio"})
    assert (audio.status, at(audio.json, "errors", 0, "field")) == (422, "target")


async def test_required_simulations_must_pass_with_exactly_the_published_draft(
    caller: Caller, runtime: Runtime
) -> None:
    path = await create_agent(caller, system_prompt=SCRIPT.format("Hi"), required_simulations=["Greets", "Polite"])
    direct = await caller.send("PUT", path, {"greeting_message": "Yo"})
    assert (direct.status, direct.json["code"], "greeting_message" in str(direct.json["detail"])) == (
        409,
        "invalid_state",
        True,
    )
    assert (await caller.send("PUT", path, {"status": "paused"})).status == 200
    draft = await save_draft(caller, path, system_prompt=SCRIPT.format("Hey"))
    publish = f"{path}/draft/publish"
    refused = await caller.post(publish, {"revision": draft["revision"]})
    assert (refused.status, refused.json["code"]) == (409, "invalid_state")
    assert "Greets (not run), Polite (not run)" in str(refused.json["detail"])
    await simulate(runtime, caller, path, target="draft", name="Greets")
    await simulate(runtime, caller, path, target="draft", name="Polite", assertions=[{"type": "said", "text": "Hey"}])
    refused = await caller.post(publish, {"revision": draft["revision"]})
    assert "Greets (failed)." in str(refused.json["detail"]), "only the failing one"
    draft = await save_draft(caller, path, draft["revision"], system_prompt=SCRIPT.format("Good day"))
    for name in ("Greets", "Polite"):
        assert (await simulate(runtime, caller, path, target="draft", name=name))["status"] == "passed"
    draft = await save_draft(caller, path, draft["revision"], system_prompt=SCRIPT.format("Good day"), name="Desk")
    assert "Greets (not run)" in str((await caller.post(publish, {"revision": draft["revision"]})).json["detail"])
    for name in ("Greets", "Polite"):
        await simulate(runtime, caller, path, target="draft", name=name)
    assert (await caller.post(publish, {"revision": draft["revision"]})).json["name"] == "Desk"
    assert (await caller.send("POST", f"{path}/draft/publish", {})).status == 422
    assert (await caller.send("PUT", path, {"required_simulations": []})).status == 200
    assert (await caller.send("PUT", path, {"greeting_message": "Yo"})).status == 200
