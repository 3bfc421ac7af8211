"""Token and revocation endpoint: authenticate the application and serve its request."""

from collections.abc import Callable
from dataclasses import dataclass

from authlib.oauth2 import OAuth2Error
from sqlalchemy.orm import Session

from switchboard.foundation.database import Database
from switchboard.foundation.settings import Settings
from switchboard.foundation.web import rate_limits
from switchboard.foundation.web.client_addresses import find_subscriber
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.oauth.clients import authenticate_client
from switchboard.resources.oauth.parameters import TooManyRequests, get_client_credentials, parse_body
from switchboard.resources.oauth.server import OAuthRequest, OAuthResponse, OAuthServer
from switchboard.resources.oauth.token_families import TokenFamilies

PER_ADDRESS, PER_CLIENT = Limit(per_second=1, burst=200), Limit(per_second=100, burst=400)
"""Guessing is hopeless at any rate; the limits keep one address, or one client in a loop, from occupying the database.
An address that has used up its burst gets less than the slowest server can do. A request that knows a secret or a token
is taken out of the address's count, because many users of an application may share an address.
"""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request as received: endpoint, address, credentials, and body."""

    endpoint: str
    address: str
    authorization: str
    mimetype: str
    body: bytes


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """Authenticates applications and serves their requests for tokens."""

    settings: Settings
    database: Database
    limiter: RateLimiter

    async def serve_request(
        self, sent: TokenRequest, act: Callable[[OAuthServer, OAuthRequest], OAuthResponse]
    ) -> OAuthResponse:
        """Authenticate the client and serve its request.

        The transaction commits before the response is sent, even for a refusal.
        """
        address = f"address:{find_subscriber(sent.address)}"
        try:
            await _count(self.limiter, sent, address, PER_ADDRESS)
            parameters = parse_body(sent.body, sent.mimetype)
            client_id, secret = get_client_credentials(sent.authorization, parameters)
            request = OAuthRequest(self.settings.base_url, parameters)
            async with self.database.system() as session:
                client = await authenticate_client(session, client_id, secret)
                await _count(self.limiter, sent, f"client:{client.client_id}", PER_CLIENT)

                def serve(sync: Session) -> tuple[OAuthResponse, TokenFamilies]:
                    server = OAuthServer(sync, self.settings.base_url, client)
                    return act(server, request), server.families

                answer, families = await session.run_sync(serve)
        except OAuth2Error as error:
            return OAuthResponse.from_error(error)
        if client.secret_hash is not None or "access_token" in answer.body:
            await self.limiter.return_request(sent.endpoint, address, PER_ADDRESS)
        for grant in families.ended:
            await self.limiter.announce_revocation(str(grant))
        return answer


async def _count(limiter: RateLimiter, sent: TokenRequest, subject: str, limit: Limit) -> None:
    verdict = await limiter.check(sent.endpoint, subject, limit)
    if not verdict.allowed:
        raise TooManyRequests(rate_limits.build_rate_limit_headers(limit, verdict))
