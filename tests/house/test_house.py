"""The repository checks its own structure."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from quart import Quart
from switchboard.apps.cli import generated_pages
from switchboard.apps.server import app
from switchboard.apps.worker.worker import WORK
from switchboard.foundation.events.catalog import CATALOG
from switchboard.foundation.web.openapi import iterate_endpoints
from switchboard.foundation.web.principal import SCOPES

from tests.fixtures.servers import REPOSITORY
from tests.house.sources import Source, collect_from

PLATFORM = REPOSITORY / "platform" / "switchboard"
# Paths outside /v1: applications authenticate with their secret, carriers' callbacks by their signature, reports
# of calendars by their secret, links to files by their signature, and the rest is public.
PUBLIC = (
    "/api/oauth/",
    "/.well-known/",
    "/carriers/",
    "/calendars/",
    "/recordings/",
    "/sms-media/",
    "/exports/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/docs",
    "/widget/",
    "/demo/",
    "/static/",
)
# Pages for users who are not signed in or have no organization yet.
OPEN_PAGES = {
    "organization_logo",
    "front_door",
    "nowhere",
    "static",
    "sign_in_page",
    "sign_in_now",
    "sign_in_with_code",
    "begin_passkey_sign_in",
    "sign_in_with_passkey",
    "sign_out_now",
    "organizations_page",
    "enter_organization",
    "forgotten_password_page",
    "request_password_link",
    "new_password_page",
    "choose_password",
    "invitation_page",
    "accept_invitation",
    "authorize_page",
    "decide",
    "begin_single_sign_on",
    "finish_single_sign_on",
}
# A URL's noun is its package.
FOLDERS = {
    "agents": "agents",
    "appointment-types": "appointments",
    "appointments": "appointments",
    "calendars": "appointments",
    "calls": "calls",
    "campaigns": "campaigns",
    "contacts": "contacts",
    "do-not-call": "do_not_call",
    "exports": "exports",
    "widgets": "widgets",
    "browser-call": "browser_calls",
    "phone-numbers": "phone_numbers",
    "privacy-requests": "privacy",
    "integrations": "integrations",
    "sms": "sms",
    "billing": "billing",
    "usage": "usage",
    "analytics": "analytics",
    "automations": "automations",
    "knowledge-bases": "knowledge_bases",
    "documents": "knowledge_bases",
    "webhook-endpoints": "webhooks",
    "webhook-deliveries": "webhooks",
    "webhook-events": "webhooks",
}
# Nested nouns with a package of their own.
NESTED = {"simulations": "simulations"}
MAX_FILE_LINES, MAX_FUNCTION_LINES = 700, 60
# Modules that open transactions across organizations: these names anywhere, and the files below for the reason given.
CROSSING_MODULES = ("jobs.py",)
MAY_CROSS = {
    "apps/dashboard/console/queries.py": "the operator's console shows all organizations",
    "apps/provider_accounts.py": "a process of a plugin serves the accounts of every organization",
    "apps/tenant_files/apply.py": "creates organizations",
    "apps/server/health.py": "measures for how long the oldest due delivery of any organization has been waiting",
    "foundation/leases.py": "a process belongs to no organization",
    "foundation/work.py": "finds the due rows of every organization",
    "foundation/encryption/rotation.py": "encrypts secrets of users again, who belong to no organization",
    "apps/worker/retention.py": "finds the organizations that have expired rows",
    "resources/calls/live/heartbeat.py": "looks at all calls of this process",
    "resources/deliveries/delivery_worker.py": "claims deliveries of every organization, and records their results",
    "resources/identity/authentication.py": "a credential names no organization",
    "resources/identity/invitations.py": "an invitation's link names no organization",
    "resources/identity/passkeys.py": "users belong to no organization",
    "resources/identity/password_links.py": "users belong to no organization",
    "resources/identity/second_factors.py": "users belong to no organization",
    "resources/identity/support.py": "a superadmin enters an organization, and writes what its members may not",
    "resources/identity/sign_in.py": "users and their browser sessions belong to no organization",
    "resources/oauth/clients.py": "applications belong to no organization",
    "resources/oauth/consent.py": "an authorization request names an application, which belongs to no organization",
    "resources/oauth/token_endpoint.py": "a code or refresh token names no organization",
    "resources/privacy/organization_deletion.py": "deletes an organization's row, which no tenant may",
    "resources/widgets/service.py": "the public key of a widget names no organization",
}


@pytest.fixture(scope="module")
def application() -> Quart:
    return app.create_routes()


def test_every_route_is_an_endpoint_or_known_to_be_public(application: Quart) -> None:
    declared = {rule.rule for rule, _, _ in iterate_endpoints(application)}
    for rule in application.url_map.iter_rules():
        blueprint, _, name = rule.endpoint.partition(".")
        if blueprint == "dashboard":
            assert name in OPEN_PAGES or hasattr(application.view_functions[rule.endpoint], "page"), (
                f"{rule.rule}: add @page or @action"
            )
            continue
        assert rule.rule in declared or rule.rule.startswith(PUBLIC), f"{rule.rule}: add @endpoint"


def test_every_endpoint_has_a_scope_a_docstring_its_folder_and_its_tests(application: Quart) -> None:
    for rule, method, declared in iterate_endpoints(application):
        assert declared.scope in SCOPES, f"{method} {rule.rule}: a scope of web/principal.py"
        assert declared.summary.endswith("."), f"{declared.name}: a one-line docstring, it is the document's summary"
        noun, *nested = rule.rule.split("/")[2:]
        folder = next((NESTED[name] for name in nested if name in NESTED), FOLDERS[noun])
        assert application.view_functions[rule.endpoint].__module__ == f"switchboard.resources.{folder}.routes"
        assert (REPOSITORY / "tests" / "api" / f"test_{folder}.py").exists()


def test_generated_pages_are_current() -> None:
    for name, page in generated_pages.render_pages().items():
        assert (REPOSITORY / "docs" / name).read_text() == page, f"docs/{name} is stale: run `make docs`"


@collect_from("platform")
def list_names_of_publishers(source: Source) -> Iterator[str]:
    """Yield the names that modules use which call `publish`."""
    calls = (node.func for node in source.nodes if isinstance(node, ast.Call))
    if source.path.name != "catalog.py" and any(isinstance(name, ast.Name) and name.id == "publish" for name in calls):
        yield from {node.id for node in source.nodes if isinstance(node, ast.Name)}


def test_every_event_is_published_somewhere() -> None:
    used = set(list_names_of_publishers())
    for kind in CATALOG.values():
        assert kind.__name__ in used, f"{kind.event} is used in no module that publishes events"


@collect_from("platform")
def list_woken_jobs(source: Source) -> Iterator[str]:
    yield from re.findall(r'\.wake\("(\w+)"', source.text)


def test_every_job_that_is_woken_exists() -> None:
    woken = set(list_woken_jobs())
    assert woken
    assert woken <= {work.name for work in WORK}, "no such job in worker.py"


@collect_from("platform")
def list_modules_that_cross(source: Source) -> Iterator[str]:
    if "database.system()" in source.text and source.path.is_relative_to(PLATFORM):
        yield source.path.relative_to(PLATFORM).as_posix()


def test_only_listed_modules_open_transactions_across_organizations() -> None:
    opening = set(list_modules_that_cross())
    crossing = {
        name for name in opening if not name.startswith("apps/cli/") and name.rpartition("/")[2] not in CROSSING_MODULES
    }
    assert crossing == MAY_CROSS.keys(), (
        "a module opens a transaction across organizations: say why, or remove the line"
    )


@collect_from("platform")
def list_modules_that_commit(source: Source) -> Iterator[str]:
    if ".commit()" in source.text:
        yield source.path.name


def test_no_code_commits_by_itself() -> None:
    assert list_modules_that_commit() == [], "a transaction is committed where its door closes"


@collect_from()
def find_large_files_and_functions(source: Source) -> Iterator[str]:
    if "versions" in source.path.parts:
        return
    if (lines := source.text.count("\n")) > MAX_FILE_LINES:
        yield f"{source.name} has {lines} lines"
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno
            if lines > MAX_FUNCTION_LINES:
                yield f"{source.name}:{node.lineno}: {node.name} has {lines} lines"


def test_files_and_functions_stay_within_their_size() -> None:
    assert find_large_files_and_functions() == [], "split them by what they do"


def test_every_plugin_has_an_entry_point_a_readme_and_its_import_contracts() -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    contracts = {contract["name"]: contract for contract in settings["tool"]["importlinter"]["contracts"]}
    only_sdk = contracts["A plugin imports only switchboard.plugin_sdk"]["source_modules"]
    independent = contracts["Plugins do not import each other"]["modules"]
    acyclic = contracts["No cycles between packages, or between modules of one"]["ancestors"]
    for folder in sorted((REPOSITORY / "plugins").iterdir()):
        project = tomllib.loads((folder / "pyproject.toml").read_text())
        module = project["tool"]["flit"]["module"]["name"]
        assert module in project["project"]["entry-points"]["switchboard.plugins"].values()
        for modules in (only_sdk, independent, acyclic):
            assert module in modules, f"{module}: add it to the import contracts of plugins in pyproject.toml"
        assert (folder / "README.md").exists()


def test_no_file_names_a_package_index_or_a_machine_specific_path() -> None:
    output = subprocess.run(
        ["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    ).stdout.split()
    for name in output:
        path = REPOSITORY / name
        if (
            not path.is_file()
            or path == Path(__file__)
            or path.suffix not in (".py", ".toml", ".md", ".lock", ".in", ".html", "")
        ):
            continue
        text = path.read_text()
        assert not re.search(r"--(extra-)?index-url|pypi\.org|/work/|/root/\w", text), (
            f"{name} names an index or a place on one machine"
        )
