"""Authorization requests: examine, ask the user, approve or decline.

`parameters` are those of the request's query, in order, duplicates included. Until application and redirect URI are
valid, errors are shown to the user (`RequestRefused`); after that they are redirected to the application
(`RedirectedError`), as RFC 6749 section 4.1.2.1 requires.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from authlib.oauth2 import OAuth2Error
from sqlalchemy.orm import Session

from switchboard.foundation.database import Database
from switchboard.resources.identity.models import User
from switchboard.resources.identity.queries import lock_membership_key
from switchboard.resources.oauth.parameters import validate_parameters
from switchboard.resources.oauth.server import OAuthRequest, OAuthServer
from switchboard.resources.oauth.token_families import Approval

Parameters: TypeAlias = Iterable[tuple[str, str]]


class RequestRefused(Exception):
    """An invalid request whose error only the user sees; the message says why."""


class RedirectedError(Exception):
    """An invalid request whose error goes to the application: the browser is redirected to `location`."""

    def __init__(self, location: str) -> None:
        super().__init__("the error is redirected to the application")
        self.location = location


@dataclass(frozen=True, slots=True)
class Consent:
    """The question to the user: may this application, with this redirect URI, have these scopes?"""

    application: str
    redirect_uri: str
    scopes: tuple[str, ...]


async def examine_request(database: Database, issuer: str, parameters: Parameters) -> Consent:
    """Examine an authorization request. Raises `RequestRefused`, `RedirectedError`."""

    def ask(session: Session) -> Consent:
        server = OAuthServer(session, issuer)
        with _errors_told(server, issuer, parameters) as request:
            application = server.examine(request)
            return Consent(application.name, request.form["redirect_uri"], tuple(request.scope.split()))

    async with database.system() as session:
        return await session.run_sync(ask)


async def approve_request(
    database: Database, issuer: str, parameters: Parameters, *, user_id: UUID, organization_id: UUID
) -> str:
    """Grant the request in one organization; return the redirect. Raises `RequestRefused`, `RedirectedError`."""
    async with database.system() as session:
        # A proof of the user's address replaces the account: it locks the user, and then the membership.
        await session.get(User, user_id, with_for_update={"read": True, "key_share": True})
        # A concurrent removal of the member waits for the approval, and deletes it too.
        membership = await lock_membership_key(session, user_id, organization_id)
        if membership is None:
            raise RequestRefused("You are not a member of this organization.")
        approval = Approval(user_id, organization_id, membership.id, membership.role)
        return await session.run_sync(_decide, issuer, parameters, approval)


async def decline_request(database: Database, issuer: str, parameters: Parameters) -> str:
    """Decline the request; return the redirect with `access_denied`. Raises `RequestRefused`, `RedirectedError`."""
    async with database.system() as session:
        return await session.run_sync(_decide, issuer, parameters, None)


def _decide(session: Session, issuer: str, parameters: Parameters, approval: Approval | None) -> str:
    server = OAuthServer(session, issuer)
    with _errors_told(server, issuer, parameters) as request:
        answer = server.decide(request, approval)
    if answer.location is None:
        raise RequestRefused(str(answer.body.get("error_description", "")))
    return answer.location


@contextmanager
def _errors_told(server: OAuthServer, issuer: str, parameters: Parameters) -> Iterator[OAuthRequest]:
    try:
        request = OAuthRequest(issuer, validate_parameters(parameters))
    except OAuth2Error as error:
        raise RequestRefused(error.get_error_description()) from None
    try:
        yield request
    except OAuth2Error as error:
        location = server.refuse(request, error).location
        if location is None:
            raise RequestRefused(error.get_error_description()) from None
        raise RedirectedError(location) from None
