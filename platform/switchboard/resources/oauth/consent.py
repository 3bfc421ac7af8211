"""What becomes of an authorization request: it is examined, put before the user, approved or declined.

`parameters` are those of the request's query, in order, doubled ones too. Where the answer may go is known only once application and redirect URI
were found valid: before that errors are shown (`RequestRefused`), after that they are sent back (`SentBack`), as RFC 6749 section 4.1.2.1 has it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from authlib.oauth2 import OAuth2Error
from sqlalchemy.orm import Session
from sqlmodel import col, select

from switchboard.foundation.database import Database, SystemSession
from switchboard.resources.identity.models import Membership, Organization, User
from switchboard.resources.oauth.parameters import checked
from switchboard.resources.oauth.server import Request, Server
from switchboard.resources.oauth.token_families import Approval

Parameters: TypeAlias = Iterable[tuple[str, str]]


class RequestRefused(Exception):
    """A request that is answered to nobody but the user; the message says why."""


class SentBack(Exception):
    """A request that is answered to the application: the browser goes to `location`."""

    def __init__(self, location: str) -> None:
        super().__init__("the request is answered to the application")
        self.location = location


@dataclass(frozen=True, slots=True)
class Consent:
    """What the user is asked: may this application, which is answered at this address, do these things?"""

    application: str
    redirect_uri: str
    scopes: tuple[str, ...]


async def examine(database: Database, issuer: str, parameters: Parameters) -> Consent:
    """What a request asks for. Raises `RequestRefused`, `SentBack`."""

    def ask(session: Session) -> Consent:
        server = Server(session, issuer)
        with _errors_told(server, issuer, parameters) as request:
            application = server.examine(request)
            return Consent(application.name, request.form["redirect_uri"], tuple(request.scope.split()))

    async with database.system() as session:
        return await session.run_sync(ask)


async def approve(
    database: Database, issuer: str, parameters: Parameters, *, user_id: UUID, organization_id: UUID
) -> str:
    """Grant what is asked, in one organization; answers where the browser goes. Raises `RequestRefused`, `SentBack`."""
    async with database.system() as session:
        approval = await _approval(session, user_id, organization_id)
        return await session.run_sync(_decide, issuer, parameters, approval)


async def decline(database: Database, issuer: str, parameters: Parameters) -> str:
    """Grant nothing; answers where the browser goes with `access_denied`. Raises `RequestRefused`, `SentBack`."""
    async with database.system() as session:
        return await session.run_sync(_decide, issuer, parameters, None)


async def _approval(session: SystemSession, user_id: UUID, organization_id: UUID) -> Approval:
    mine = select(Membership).where(
        col(Membership.user_id) == user_id, col(Membership.organization_id) == organization_id
    )
    # Whoever removes the member meanwhile waits for the approval, and takes it along.
    membership = (await session.exec(mine.with_for_update(read=True, key_share=True))).one_or_none()
    user = await session.get(User, user_id)
    is_superadmin = user is not None and user.is_superadmin
    if membership is None and (not is_superadmin or await session.get(Organization, organization_id) is None):
        raise RequestRefused("You are not a member of this organization.")
    is_owner = is_superadmin or (membership is not None and membership.role == "owner")
    return Approval(user_id, organization_id, membership.id if membership else None, is_owner)


def _decide(session: Session, issuer: str, parameters: Parameters, approval: Approval | None) -> str:
    server = Server(session, issuer)
    with _errors_told(server, issuer, parameters) as request:
        answer = server.decide(request, approval)
    if answer.location is None:
        raise RequestRefused(str(answer.body.get("error_description", "")))
    return answer.location


@contextmanager
def _errors_told(server: Server, issuer: str, parameters: Parameters) -> Iterator[Request]:
    try:
        request = Request(issuer, checked(parameters))
    except OAuth2Error as error:
        raise RequestRefused(error.get_error_description()) from None
    try:
        yield request
    except OAuth2Error as error:
        location = server.refuse(request, error).location
        if location is None:
            raise RequestRefused(error.get_error_description()) from None
        raise SentBack(location) from None
