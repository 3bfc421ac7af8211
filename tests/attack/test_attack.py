"""The attacks of `make attack` in a short form: they find nothing here, and they find holes that a proxy plants."""

import asyncio

import pytest
from aiohttp import web

from tests.attack.attacks import ATTACKS
from tests.attack.credentials import create_credentials
from tests.attack.proxy import accept_everything, run_proxy
from tests.attack.report import AttackResult, render_table
from tests.attack.scene import Scene, open_scene, run_attacks
from tests.fixtures.app import LivePlatform
from tests.fixtures.command_line import Operator

RESOURCES = ("/v1/contacts", "/v1/automations", "/v1/sms/media", "/v1/privacy-requests", "/v1/agents/{agent_id}/draft")
FORGETFUL = ("/v1/contacts/", "/v1/sms/media/", "/v1/privacy-requests/")
CHOSEN = ("wrong-scopes", "wrong-credentials", "foreign-ids")
REFUSALS = ("wrong-credentials", "sockets-and-links", "public-pages")


async def run_named(scene: Scene, *names: str) -> dict[str, AttackResult]:
    results = await run_attacks(scene, [(name, ATTACKS[name]) for name in names])
    return {result.name: result for result in results}


@pytest.mark.system
@pytest.mark.timeout(900)
async def test_attacks_find_planted_holes_and_nothing_without_them(live: LivePlatform, operator: Operator) -> None:
    credentials = await asyncio.to_thread(create_credentials, operator.ask)
    async with (
        run_proxy(live.runtime.settings.base_url) as holes,
        open_scene(holes.url, credentials) as scene,
    ):
        paths = scene.api["paths"]
        scene.api["paths"] = {path: paths[path] for path in paths if path.startswith(RESOURCES)}
        for organization in (scene.victim, scene.stranger):
            organization.operations = [
                operation for operation in organization.operations if operation.path.startswith(RESOURCES)
            ]
        found = await run_named(scene, *CHOSEN)
        assert not [finding for result in found.values() for finding in result.findings]
        assert all(found[name].attempts > 50 for name in CHOSEN)

        # An endpoint that forgets scopes, credentials, and the organization.
        def forget_organization(request: web.Request) -> str | None:
            is_draft = request.path.endswith("/draft")
            return credentials.victim.api_key if request.path.startswith(FORGETFUL) or is_draft else None

        # An endpoint that refuses each request before it looks anything up.
        def refuse_early(request: web.Request, response: web.Response) -> web.Response:
            is_early = request.path.startswith("/v1/automations/") and response.status == 404
            return web.json_response({"errors": [{"field": "name"}]}, status=422) if is_early else response

        holes.replace_key, holes.replace_response = forget_organization, refuse_early
        found = await run_named(scene, "foreign-ids", *CHOSEN[:2])
        requests = {name: " ".join(finding.request for finding in found[name].findings) for name in found}
        for path in (
            "/v1/contacts/{contact_id}",
            "/v1/sms/media/{media_id}",
            "/v1/privacy-requests/{request_id}",
            "/v1/agents/{agent_id}/draft",
        ):
            assert f"GET {path} with " in requests["foreign-ids"]
        assert "the id in automation_id is not looked up" in requests["foreign-ids"]
        assert "rows of the victim afterwards" in requests["foreign-ids"], "the contact was deleted"
        assert "/v1/contacts/" in requests["wrong-scopes"]
        assert "with None" in requests["wrong-credentials"]
        assert "as stranger" in requests["canaries"]

        holes.replace_response = accept_everything
        found = await run_named(scene, *REFUSALS)
        assert all(found[name].findings for name in REFUSALS), found


def test_the_table_counts_and_quotes_findings() -> None:
    result = AttackResult("foreign-ids", seconds=1.5, left_out=["no second server"])
    result.check(True, "GET /v1/agents/1", 404)
    result.check(False, "GET /v1/agents/2", "200 secret")
    table = render_table([result]).splitlines()
    assert table[1].split() == ["foreign-ids", "2", "1", "1", "1.5"]
    assert table[3:] == [
        "FINDING foreign-ids",
        "  GET /v1/agents/2",
        "  200 secret",
        "left out of foreign-ids: no second server",
    ]
