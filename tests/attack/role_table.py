"""Roles: everything that the documented table denies a viewer, an agent, and a superadmin in a support session."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.attack.crawl import crawl_dashboard
from tests.attack.http_client import HttpClient
from tests.attack.oauth_client import ORGANIZATION, Application
from tests.attack.organization import Organization, join
from tests.attack.report import AttackResult
from tests.attack.scene import Scene, gather_limited

TABLE = Path(__file__).parents[2] / "docs" / "reference" / "roles.md"
ROW = re.compile(r"\| `([^`]+)` \| (\w+) \| (\w+) \| (\w+) \| (\w+) \|")
COLUMNS = ("viewer", "agent", "builder", "owner")
ATTACKERS = ("viewer", "agent")
OUTLASTING = (
    "/dashboard/agents/<agent_id>/talk",
    "/dashboard/agents/<agent_id>/widgets",
    "/dashboard/live/answer",
    "/dashboard/widgets/<widget_id>",
    "/dashboard/widgets/<widget_id>/turn-on",
)
"""Actions of builders that last, which a support session must not do either (decision 83)."""
PREVIEW = "/preview"
"""Ending of pages that are posted: a support session sees them as it sees each page, and they change nothing."""


@dataclass(frozen=True, slots=True)
class RoleTable:
    """Scopes, and pages with their methods, that each role has."""

    scopes: dict[str, set[str]]
    pages: dict[tuple[str, str], set[str]]

    @classmethod
    def read(cls) -> "RoleTable":
        """Read the documented table."""
        scopes, pages = {}, {}
        for name, *marks in ROW.findall(TABLE.read_text()):
            roles = {role for role, mark in zip(COLUMNS, marks, strict=True) if mark == "yes"}
            if " " in name:
                method, path = name.split(" ")
                pages[method, path] = roles
            else:
                scopes[name] = roles
        return cls(scopes, pages)

    def list_denied(self, role: str) -> list[tuple[str, str]]:
        """List the methods and paths of the pages and actions that a role lacks."""
        return [page for page, roles in self.pages.items() if role not in roles]


def fill_path(path: str, organization: Organization) -> str:
    """Return the path of a page with ids of the organization's rows."""
    return re.sub("<([^>]+)>", lambda name: organization.find_id(name[1]) if name[1].endswith("_id") else "1", path)


async def attack_role_table(scene: Scene, result: AttackResult) -> None:
    """Send what the table denies as a viewer and as an agent: in the dashboard, and by an application of theirs."""
    table, victim = RoleTable.read(), scene.victim
    for role in ATTACKERS:
        person, _ = await join(victim.owner, victim.canary, role)

        async def open_or_submit(method: str, path: str, *, person: HttpClient = person, role: str = role) -> None:
            answer = await (person.get(path) if method == "GET" else person.submit(path))
            result.check(answer.status == 403, f"{method} {path} as {role}", answer)

        await gather_limited(
            open_or_submit(method, fill_path(path, victim)) for method, path in table.list_denied(role)
        )
        await _attack_api(scene, result, table, role, person)


async def _attack_api(scene: Scene, result: AttackResult, table: RoleTable, role: str, person: HttpClient) -> None:
    """Send each operation that a role lacks, with a token that an application got from a user of the role for all."""
    application = Application(scene, scene.credentials.application)
    tokens = await application.obtain_tokens(person, scope=" ".join(table.scopes))
    denied = {scope for scope, roles in table.scopes.items() if role not in roles}
    granted = denied & set(tokens["scope"].split())
    result.check(not granted, f"scopes that a {role} grants", granted)
    holder = scene.victim.api.with_token(tokens["access_token"])

    async def send(method: str, path: str, body: object) -> None:
        answer = await holder.send(method, path, body)
        refused = (answer.status, answer.json.get("code")) == (403, "insufficient_scope")
        result.check(refused, f"{method} {path} as {role}", answer)

    await gather_limited(
        send(operation.method, *operation.fill(scene.victim.find_id))
        for operation in scene.victim.operations
        if operation.scope in denied
    )


async def attack_support(scene: Scene, result: AttackResult) -> None:
    """Do as a superadmin in a support session what only owners do, and what outlasts the session."""
    if scene.credentials.superadmin is None:
        result.left_out.append("the credentials have no superadmin")
        return
    victim = scene.victim
    consent = await Application(scene, scene.credentials.application).request_consent(victim.owner)
    (organization_id,) = ORGANIZATION.findall(consent.text)
    operator = HttpClient(scene.base_url, victim.name, scene.nobody.watch, scene.nobody.session)
    await operator.sign_in(scene.credentials.superadmin.email, scene.credentials.superadmin.password)
    support = f"/dashboard/console/organizations/{organization_id}/support"
    entered = await operator.submit(support, {"reason": "attack"})
    assert entered.status == 303, entered
    operator.csrf = ""  # the token is the organization's too
    # Each page is searched for the organization's secrets, as every response is.
    crawled = await crawl_dashboard(operator, but=("/dashboard/console", "/dashboard/oauth-clients"))
    result.check("/dashboard/keys" in crawled.pages, "a support session sees the pages of owners", crawled.pages)
    denied = [
        path
        for method, path in RoleTable.read().list_denied("builder")
        if method == "POST" and not path.endswith(PREVIEW)
    ]

    async def submit(path: str) -> None:
        answer = await operator.submit(path, crawled.forms[path].fields if path in crawled.forms else ())
        result.check(answer.status == 403, f"POST {path} in a support session", answer)

    await gather_limited(submit(fill_path(path, victim)) for path in (*denied, *OUTLASTING))
    await _attack_grant(scene, result, operator, organization_id)
    left = await operator.submit("/dashboard/support/leave")
    assert left.status == 303, left
    for path in ("/dashboard/agents", "/dashboard/keys"):
        answer = await operator.get(path)
        result.check(answer.status in (303, 403), f"GET {path} after a support session", answer)


async def _attack_grant(scene: Scene, result: AttackResult, operator: HttpClient, organization_id: str) -> None:
    """Allow an application in a support session: its tokens would outlast the session."""
    application = Application(scene, scene.credentials.application)
    answer = await application.decide(operator, organization_id)
    result.check("code=" not in answer.headers.get("Location", ""), "a grant in a support session", answer)
