"""Token and revocation endpoint: authenticate the application and serve its request."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from authlib.oauth2 import OAuth2Error
from quart import Response, request
from sqlalchemy.orm import Session

from switchboard.foundation.database import Database
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.client_addresses import find_subscriber
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimiter, build_rate_limit_headers
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
class TokenEndpoint:
    settings: Settings
    database: Database
    limiter: RateLimiter

    async def respond(self, endpoint: str, act: Callable[[OAuthServer, OAuthRequest], OAuthResponse]) -> Response:
        """Authenticate the client and serve its request. `endpoint` is the name for the rate limits.

        The transaction commits before the response is sent, even for a refusal.
        """
        raw = await request.get_data(as_text=False, cache=False, parse_form_data=False)
        address = f"address:{find_subscriber(request.remote_addr or '')}"
        try:
            await self._count(endpoint, address, PER_ADDRESS)
            parameters = parse_body(raw, request.mimetype)
            client_id, secret = get_client_credentials(request.headers.get("Authorization", ""), parameters)
            asked = OAuthRequest(self.settings.base_url, parameters)
            async with self.database.system() as session:
                client = await authenticate_client(session, client_id, secret)
                await self._count(endpoint, f"client:{client.client_id}", PER_CLIENT)

                def serve(sync: Session) -> tuple[OAuthResponse, TokenFamilies]:
                    server = OAuthServer(sync, self.settings.base_url, client)
                    return act(server, asked), server.families

                answer, families = await session.run_sync(serve)
        except OAuth2Error as error:
            status, body, headers = error()
            return Response(json.dumps(dict(body)), status, dict(headers))
        if client.secret_hash is not None or "access_token" in answer.body:
            await self.limiter.return_request(endpoint, address, PER_ADDRESS)
        for grant in families.ended:
            await self.limiter.announce_revocation(str(grant))
        return Response(json.dumps(dict(answer.body)), answer.status, answer.headers)

    async def _count(self, endpoint: str, subject: str, limit: Limit) -> None:
        verdict = await self.limiter.check(endpoint, subject, limit)
        if not verdict.allowed:
            raise TooManyRequests(build_rate_limit_headers(limit, verdict))
