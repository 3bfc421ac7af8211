"""OAuth clients: registration by superadmins, the authentication of clients, and that of the access tokens that they
send. Applications belong to no organization.
"""

import re
import secrets
from collections.abc import Sequence
from hmac import compare_digest
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

import structlog

from switchboard.foundation.database import Database, SystemSession, now
from switchboard.foundation.jobs import repeat_in_batches
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.principal import Principal, get_role_scopes
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity.authentication import LAST_USE_PRECISION, build_principal, digest
from switchboard.resources.identity.queries import find_membership
from switchboard.resources.identity.service import IdentityError
from switchboard.resources.oauth import queries
from switchboard.resources.oauth.models import OAuthClient
from switchboard.resources.oauth.parameters import ClientRefused

logger = structlog.get_logger()
MOST_REDIRECT_URIS = 20
THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_URI = re.compile(r"[A-Za-z0-9\-._~:/?\[\]@!$&'()+,;=%]{1,2000}")
_HOST = re.compile(r"[A-Za-z0-9\-.]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_OF_ANSWERS = {"code", "state", "iss", "error", "error_description", "error_uri"}
_NOBODYS = digest("")


async def list_clients(database: Database) -> list[OAuthClient]:
    """List every application, by name."""
    async with database.system() as session:
        return await queries.list_applications(session)


async def get_client(database: Database, client: UUID) -> OAuthClient:
    """Return an application. Raises `NotFound`."""
    async with database.system() as session:
        return await _get(session, client)


async def register_client(
    database: Database, *, name: str, redirect_uris: Sequence[str], public: bool = False
) -> tuple[OAuthClient, str | None]:
    """Register an application; return it and its secret, which is not stored. A public application has none. Raises
    `IdentityError`.
    """
    secret = None if public else secrets.token_urlsafe(32)
    client = OAuthClient(
        client_id=secrets.token_urlsafe(16),
        secret_hash=digest(secret) if secret else None,
        name=_checked_name(name),
        redirect_uris=_checked_uris(redirect_uris),
    )
    async with database.system() as session:
        session.add(client)
    logger.info("application registered", client_id=client.client_id)
    return client, secret


async def update_client(database: Database, client: UUID, *, name: str, redirect_uris: Sequence[str]) -> None:
    """Change an application's name and redirect URIs. Raises `IdentityError`, `NotFound`."""
    checked = _checked_name(name), _checked_uris(redirect_uris)
    async with database.system() as session:
        found = await _get(session, client)
        found.name, found.redirect_uris = checked


async def rotate_client_secret(database: Database, client: UUID) -> tuple[OAuthClient, str]:
    """Replace an application's secret; return the new one. Tokens stay valid. Raises `IdentityError` for a public
    application, and `NotFound`.
    """
    secret = secrets.token_urlsafe(32)
    async with database.system() as session:
        found = await _get(session, client)
        if found.secret_hash is None:
            raise IdentityError("A public application has no secret.")
        found.secret_hash = digest(secret)
        logger.info("application has a new secret", client_id=found.client_id)
    return found, secret


async def delete_client(database: Database, limiter: RateLimiter, client: UUID) -> None:
    """Delete an application with everything that users granted it. Raises `NotFound`."""
    async with database.system() as session:
        found = await _get(session, client)
        # A concurrent approval waits for this lock, and then finds the application gone.
        ended = await queries.list_application_grants(session, client)
        await session.delete(found)
        logger.info("application removed", client_id=found.client_id)
    for grant in ended:
        await limiter.announce_revocation(str(grant))


async def authenticate_client(session: SystemSession, client_id: str, secret: str | None) -> OAuthClient:
    """Authenticate a client.

    Raises `ClientRefused`, with the same message and after the same work for an unknown application and a wrong secret.
    """
    client = await session.run_sync(queries.find_application, client_id)
    kept = (client and client.secret_hash) or _NOBODYS
    fits = compare_digest(digest(secret or ""), kept) and secret is not None
    if client is not None and client.secret_hash is None:
        fits = secret is None
    if client is None or not fits:
        raise ClientRefused
    return client


async def authenticate_token(session: SystemSession, token_hash: bytes) -> Principal | None:
    """Return the principal of an access token, and record its use to the minute; None for one that is not valid.

    A user acts through an application, with the scopes that the user may still grant.
    """
    found = await queries.find_access_token(session, token_hash)
    if found is None:
        return None
    grant, granted, client_id, organization = found
    scopes = frozenset(granted)
    if scopes - get_role_scopes("viewer"):
        membership = await find_membership(session, grant.user_id, organization.id)
        scopes &= get_role_scopes(membership.role if membership else "viewer")
    if grant.last_used_at is None or grant.last_used_at < now() - LAST_USE_PRECISION:
        grant.last_used_at = now()
    # The whole token family is one credential: it shares its rate limits and is revoked as one.
    return build_principal(
        organization, credential_id=grant.id, actor=f"user:{grant.user_id} via {client_id}", scopes=scopes
    )


async def delete_expired_grants(database: Database) -> None:
    await repeat_in_batches(database, queries.delete_old_tokens)
    await repeat_in_batches(database, queries.delete_useless_grants)


async def _get(session: SystemSession, client: UUID) -> OAuthClient:
    found = await session.get(OAuthClient, client, with_for_update=True)
    if found is None:
        raise NotFound
    return found


def _checked_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > 255 or not name.isprintable():
        raise IdentityError("an application needs a name of at most 255 characters")
    return name


def _checked_uris(uris: Sequence[str]) -> list[str]:
    if not uris or len(uris) > MOST_REDIRECT_URIS:
        raise IdentityError(f"an application needs a redirect URI, and has at most {MOST_REDIRECT_URIS}")
    for uri in uris:
        if not _is_redirect_uri(uri):
            rules = (
                "https (http only for this machine), absolute, without user name, fragment, wildcard, or the "
                "parameters of a response"
            )
            raise IdentityError(f"{uri} is not a redirect URI: {rules}")
    return list(dict.fromkeys(uris))


def _is_redirect_uri(uri: str) -> bool:
    if not _URI.fullmatch(uri):
        return False
    try:
        url = urlsplit(uri)
        port_fits = url.port is None or url.port > 0
    except ValueError:
        return False
    secure = uri.startswith("https://") or (uri.startswith("http://") and url.hostname in THIS_MACHINE)
    doubled = _OF_ANSWERS & {name for name, _ in parse_qsl(url.query, keep_blank_values=True)}
    return (
        secure
        and _HOST.fullmatch(url.hostname or "") is not None
        and port_fits
        and "@" not in url.netloc
        and not doubled
    )
