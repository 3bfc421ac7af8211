"""Credentials that the attacks need, made by the command line: `python -m tests.attack.credentials > FILE`.

Run it where `switchboard` works for the instance, with the same environment. It creates two organizations, each with
an owner, and three OAuth applications; the attacks make everything else through the dashboard and the API.
"""

import secrets
from collections.abc import Callable, Mapping

import click
from pydantic import BaseModel

from tests.fixtures.command_line import Operator

REDIRECT_URI = "https://app.example.com/cb"


class OrganizationCredentials(BaseModel):
    """An API key with every scope, and the owner's e-mail address and password."""

    api_key: str
    email: str
    password: str


class SuperadminCredentials(BaseModel):
    """E-mail address and password of a superadmin who is a member of no organization."""

    email: str
    password: str


class ApplicationCredentials(BaseModel):
    """A registered application with the redirect URI `REDIRECT_URI`; a public one has no secret."""

    client_id: str
    client_secret: str | None


class Credentials(BaseModel):
    """Credentials of two organizations, two applications with a secret, a public application, and a superadmin, who
    may be left out.
    """

    victim: OrganizationCredentials
    stranger: OrganizationCredentials
    application: ApplicationCredentials
    other_application: ApplicationCredentials
    public_application: ApplicationCredentials
    superadmin: SuperadminCredentials | None = None


def create_credentials(ask: Callable[..., Mapping[str, str]]) -> Credentials:
    """Create them. `ask` runs a command of `switchboard` and returns its JSON."""

    def create_organization(name: str) -> OrganizationCredentials:
        made = ask("orgs", "create", "--name", f"Attack: {name}")
        email, password = f"{name}-{secrets.token_hex(6)}@example.com", secrets.token_urlsafe(18)
        ask("users", "create", "--email", email, "--password", password, "--org", made["id"])
        return OrganizationCredentials(api_key=made["api_key"], email=email, password=password)

    def register_application(*options: str) -> ApplicationCredentials:
        made = ask("oauth-clients", "create", "--name", "Attack", "--redirect-uri", REDIRECT_URI, *options)
        return ApplicationCredentials.model_validate(made)

    def create_superadmin() -> SuperadminCredentials:
        email, password = f"superadmin-{secrets.token_hex(6)}@example.com", secrets.token_urlsafe(18)
        ask("users", "create", "--email", email, "--password", password, "--superadmin")
        return SuperadminCredentials(email=email, password=password)

    return Credentials(
        victim=create_organization("victim"),
        stranger=create_organization("stranger"),
        application=register_application(),
        other_application=register_application(),
        public_application=register_application("--public"),
        superadmin=create_superadmin(),
    )


if __name__ == "__main__":
    click.echo(create_credentials(Operator().ask).model_dump_json(indent=2))
