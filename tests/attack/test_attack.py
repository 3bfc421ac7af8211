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

RESOURCES = ("/v1/contacts", "/v1/automations")
CHOSEN = ("wrong-scopes", "wrong-credentials", "foreign-ids")
REFUSALS = ("wrong-credentials", "sockets-and-links", "public-pages")


async def run_named(scene: Scene, *names: str) -> dict[str, AttackResult]:
    results = await run_attacks(scene, [(name, ATTACKS[name]) for name in names])
    return {result.name: result for result in results}


@pytest.mark.system
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
            return credentials.victim.api_key if request.path.startswith("/v1/contacts/") else None

        holes.replace_key = forget_organization
        found = await run_named(scene, "foreign-ids", *CHOSEN[:2])
        requests = {name: " ".join(finding.request for finding in found[name].findings) for name in found}
        assert "GET /v1/contacts/{contact_id} with " in requests["foreign-ids"]
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
