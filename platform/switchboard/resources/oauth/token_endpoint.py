"""Requests of applications to the token and the revocation endpoint."""

from collections.abc import Callable
from dataclasses import dataclass

from authlib.oauth2 import OAuth2Error
from sqlalchemy.orm import Session

from switchboard.foundation.web import rate_limits
from switchboard.foundation.web.principal import Limit
from switchboard.resources.oauth.clients import authenticate_client
from switchboard.resources.oauth.errors import TooManyRequests
from switchboard.resources.oauth.parameters import client_credentials, of_body
from switchboard.resources.oauth.server import Answer, Request, Server
from switchboard.resources.oauth.token_families import Families
from switchboard.runtime import Runtime

# Guessing is hopeless at any rate; this keeps one address, and one client in a loop, from taking the database to itself.
PER_ADDRESS, PER_CLIENT = Limit(50, 200), Limit(100, 400)


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it came: from where, to which endpoint, and what it says."""

    endpoint: str
    address: str
    authorization: str
    mimetype: str
    body: bytes


async def exchange(runtime: Runtime, sent: Sent, act: Callable[[Server, Request], Answer]) -> Answer:
    """Authenticate the client and answer it. Whatever the answer is, what was done on the way is committed before it goes out."""
    try:
        await _count(runtime, sent, f"address:{sent.address}", PER_ADDRESS)
        parameters = of_body(sent.body, sent.mimetype)
        client_id, secret = client_credentials(sent.authorization, parameters)
        request = Request(runtime.settings.base_url, parameters)
        async with runtime.database.system() as session:
            client = await authenticate_client(session, client_id, secret)
            await _count(runtime, sent, f"client:{client.client_id}", PER_CLIENT)

            def serve(sync: Session) -> tuple[Answer, Families]:
                server = Server(sync, runtime.settings.base_url, client)
                return act(server, request), server.families

            answer, families = await session.run_sync(serve)
    except OAuth2Error as error:
        return Answer.of(error)
    for grant in families.ended:
        await runtime.limiter.tell_revoked(str(grant))
    return answer


async def _count(runtime: Runtime, sent: Sent, who: str, limit: Limit) -> None:
    verdict = await runtime.limiter.check(sent.endpoint, who, limit)
    if not verdict.allowed:
        raise TooManyRequests(rate_limits.headers(limit, verdict))
