"""`orgs`, `keys`, `users`, `oauth-clients`."""

import sys
from uuid import UUID

import click

from switchboard.apps.cli.lazy_group import LazyGroup
from switchboard.apps.cli.output import Failure, print_result, run_async, run_with_json
from switchboard.apps.cli.session import open_runtime
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import configure_providers
from switchboard.engine.providers.editing import find_tenant_file
from switchboard.foundation.object_store import ObjectStoreAway
from switchboard.foundation.web.principal import SCOPES
from switchboard.plugin_sdk import ProviderError
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.password_links import PasswordLinks
from switchboard.resources.identity.queries import find_key_owner, find_user, list_all_organizations
from switchboard.resources.identity.second_factors import SecondFactors
from switchboard.resources.identity.support import give_up_move, resume_organization, suspend_organization
from switchboard.resources.oauth import clients
from switchboard.resources.privacy.organization_deletion import OrganizationDeleter, OrganizationInUse


@click.group(cls=LazyGroup, places={"export": "move:export", "import": "move:import_archive"})
def orgs() -> None:
    """Organizations."""


@orgs.command("create")
@click.option("--name", required=True)
@run_with_json
async def create_organization(name: str, as_json: bool) -> None:
    """Create an organization with the embedded default's providers, and an API key with every scope."""
    async with open_runtime() as runtime, runtime.database.system() as session:
        organization = identity.create_organization(session, name=name)
        async with session.narrow(organization.id) as tenant:
            _, key = await identity.create_api_key(tenant, name="default", scopes=list(SCOPES))
            await configure_providers(
                tenant, runtime.registry, runtime.keyring, list_embedded_providers(runtime.registry)
            )
    print_result({"id": str(organization.id), "api_key": key}, as_json=as_json)


@orgs.command("list")
@run_with_json
async def list_organizations(as_json: bool) -> None:
    """List the organizations."""
    async with open_runtime() as runtime, runtime.database.system() as session:
        found = await list_all_organizations(session)
    print_result({str(organization.id): organization.name for organization in found}, as_json=as_json)


@orgs.command("delete")
@click.argument("organization_id", type=UUID)
@click.option("--yes", is_flag=True, help="Do not ask.")
@run_with_json
async def delete_organization(organization_id: UUID, yes: bool, as_json: bool) -> None:
    """Delete an organization for good: calls, recordings, texts, contacts, keys, ledger, and audit log. Asks for its
    slug, or its name if it has none.
    """
    async with open_runtime() as runtime:
        async with runtime.database.system() as session:
            found = await identity.find_organization(session, organization_id)
            name, slug = found.name, found.slug
        if (path := find_tenant_file(runtime.settings.tenants_dir, slug)) is not None:
            raise Failure(f"{path} would create the organization again: remove the file first")
        if not yes and click.prompt(f"{name} is deleted for good. Type {slug or name} to confirm") != (slug or name):
            raise Failure("nothing was deleted")
        try:
            report = await runtime.call(OrganizationDeleter).delete(organization_id)
        except (OrganizationInUse, ProviderError) as error:
            raise Failure(str(error)) from None
        except ObjectStoreAway as error:
            raise Failure(f"the store of the recordings cannot be reached, run the command again: {error}") from None
    counted = {"recordings": report.recordings, "knowledge_bases": report.knowledge_bases}
    print_result({"id": str(organization_id), "balance": float(report.balance), **counted}, as_json=as_json)


@orgs.command("suspend")
@click.argument("organization_id", type=UUID)
@click.option("--reason", required=True, help="The organization's users see it.")
@run_with_json
async def suspend(organization_id: UUID, reason: str, as_json: bool) -> None:
    """Suspend an organization: it gets and places no calls, sends no text messages, and cannot use the API and the
    dashboard. Live calls end by themselves.
    """
    async with open_runtime() as runtime:
        await suspend_organization(runtime.database, organization_id, reason=reason, actor=identity.OPERATOR)
    print_result({"id": str(organization_id), "suspended": True}, as_json=as_json)


@orgs.command("resume")
@click.argument("organization_id", type=UUID)
@run_with_json
async def resume(organization_id: UUID, as_json: bool) -> None:
    """Resume a suspended organization, or give up the move of a frozen one. Its campaigns, automations, and deliveries
    go on where they stopped: never resume one that another installation has imported. One that is suspended and frozen
    stays suspended.
    """
    async with open_runtime() as runtime:
        if not await give_up_move(runtime.database, organization_id, actor=identity.OPERATOR):
            await resume_organization(runtime.database, organization_id, actor=identity.OPERATOR)
        async with runtime.database.system() as session:
            found = await identity.find_organization(session, organization_id)
    print_result({"id": str(organization_id), "suspended": found.suspended_at is not None}, as_json=as_json)


@click.group(
    cls=LazyGroup,
    places={
        "rotate": "secret_keys:rotate_secret_keys",
        "reencrypt": "secret_keys:reencrypt_organization_texts",
        "shred": "secret_keys:shred_organization_keys",
    },
)
def keys() -> None:
    """API keys, and the keys that encrypt secrets."""


@keys.command("create")
@click.option("--org", "organization_id", type=UUID, required=True)
@click.option("--name", required=True)
@click.option("--scope", "scopes", multiple=True, required=True)
@run_with_json
async def create_key(organization_id: UUID, name: str, scopes: tuple[str, ...], as_json: bool) -> None:
    """Create an API key; it is shown once."""
    async with open_runtime() as runtime, runtime.database.write(organization_id) as session:
        key, text = await identity.create_api_key(session, name=name, scopes=scopes)
    print_result({"id": str(key.id), "api_key": text}, as_json=as_json)


@keys.command("revoke")
@click.argument("key_id", type=UUID)
@run_with_json
async def revoke_key(key_id: UUID, as_json: bool) -> None:
    """Revoke an API key for good, at once."""
    async with open_runtime() as runtime:
        async with runtime.database.system() as session:
            organization_id = await find_key_owner(session, key_id)
        if organization_id is None:
            raise Failure(f"there is no API key {key_id}")
        async with runtime.database.write(organization_id) as session:
            key = await identity.revoke_api_key(session, key_id)
        await runtime.limiter.announce_revocation(str(key_id))
    if key.revoked_at is None:
        raise Failure("the key was not revoked")
    print_result({"id": str(key.id), "revoked_at": key.revoked_at.isoformat()}, as_json=as_json)


@click.group()
def users() -> None:
    """Users of the dashboard."""


def read_password(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """Return the option's value; the first line of standard input for `-`."""
    return sys.stdin.readline().rstrip("\r\n") if value == "-" else value


@users.command("create")
@click.option("--email", required=True)
@click.option(
    "--password",
    required=True,
    callback=read_password,
    help="`-` reads it from standard input, where other users of the machine do not see it.",
)
@click.option("--superadmin", is_flag=True)
@click.option("--org", "organization_id", type=UUID, default=None)
@run_with_json
async def create_user(email: str, password: str, superadmin: bool, organization_id: UUID | None, as_json: bool) -> None:
    """Create a user, as an owner of an organization if one is given."""
    async with open_runtime() as runtime, runtime.database.system() as session:
        user = await identity.create_user(
            session, email=email, password=password, superadmin=superadmin, organization_id=organization_id
        )
    print_result({"id": str(user.id), "email": user.email}, as_json=as_json)


@users.command("add")
@click.option("--email", required=True)
@click.option("--org", "organization_id", type=UUID, required=True)
@run_with_json
async def add_owner(email: str, organization_id: UUID, as_json: bool) -> None:
    """Make an existing user an owner of an organization."""
    async with open_runtime() as runtime, runtime.database.system() as session:
        user = await identity.add_owner(session, await find_user(session, email), organization_id)
    print_result({"id": str(user.id), "email": user.email}, as_json=as_json)


@users.command("password-link")
@click.option("--email", required=True)
@run_with_json
async def create_password_link(email: str, as_json: bool) -> None:
    """Print a link with which a user chooses a new password within an hour, for installations that send no e-mail.
    Hand it to the user alone: its use confirms the address.
    """
    async with open_runtime() as runtime:
        link = await runtime.call(PasswordLinks).create(email)
    print_result({"link": link}, as_json=as_json)


@users.command("confirm")
@click.option("--email", required=True)
@run_with_json
async def confirm_user(email: str, as_json: bool) -> None:
    """Confirm that an e-mail address belongs to its user, and print the link with which they choose a new password
    within an hour. The account is reset: its organization stays, and nothing that signed in to it.
    """
    async with open_runtime() as runtime:
        link = await runtime.call(PasswordLinks).confirm(email)
    print_result({"link": link}, as_json=as_json)


@users.command("reset-second-factor")
@click.option("--email", required=True)
@run_async
async def reset_second_factor(email: str) -> None:
    """Remove the authenticator app and the passkeys of a user who has lost them: the password alone signs in."""
    async with open_runtime() as runtime:
        await runtime.call(SecondFactors).reset(email)
    click.echo(f"{email} signs in with the password alone")


@click.group("oauth-clients")
def oauth_clients() -> None:
    """Applications that may ask users for access."""


@oauth_clients.command("create")
@click.option("--name", required=True)
@click.option("--redirect-uri", "redirect_uris", multiple=True, required=True)
@click.option(
    "--public", is_flag=True, help="For an application that cannot keep a secret: it gets none, and must use PKCE."
)
@run_with_json
async def create_oauth_client(name: str, redirect_uris: tuple[str, ...], public: bool, as_json: bool) -> None:
    """Register an application; its secret is shown once."""
    async with open_runtime() as runtime:
        client, secret = await clients.register_client(
            runtime.database, name=name, redirect_uris=redirect_uris, public=public
        )
    print_result({"client_id": client.client_id, "client_secret": secret}, as_json=as_json)
