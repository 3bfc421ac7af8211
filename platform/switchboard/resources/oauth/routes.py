"""OAuth's endpoints for applications: tokens, their revocation, and the server's metadata. They answer in RFC 6749's form, not in that of `/v1`."""

import json
from collections.abc import Callable

from quart import Blueprint, Response, request

from switchboard.foundation.web.openapi import AUTHORIZE, REVOKE, TOKEN
from switchboard.foundation.web.principal import SCOPES
from switchboard.resources.oauth.server import GRANT_TYPES, Answer, Request, Server
from switchboard.resources.oauth.token_endpoint import Sent, exchange
from switchboard.runtime import current_runtime

blueprint = Blueprint("oauth", __name__)
CLIENT_AUTHENTICATION = ["client_secret_basic", "client_secret_post", "none"]


@blueprint.post(TOKEN)
async def issue_token() -> Response:
    """Redeem an authorization code, or refresh."""
    return await _answered("oauth_token", Server.token)


@blueprint.post(REVOKE)
async def revoke_token() -> Response:
    """Give a token back, and with it everything that was issued on the same approval (RFC 7009)."""
    return await _answered("oauth_revoke", Server.revoke)


@blueprint.get("/.well-known/oauth-authorization-server")
async def metadata() -> dict[str, object]:
    """What this server can do (RFC 8414)."""
    issuer = current_runtime().settings.base_url
    return {
        "issuer": issuer,
        "authorization_endpoint": issuer + AUTHORIZE,
        "token_endpoint": issuer + TOKEN,
        "revocation_endpoint": issuer + REVOKE,
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANT_TYPES),
        "token_endpoint_auth_methods_supported": CLIENT_AUTHENTICATION,
        "revocation_endpoint_auth_methods_supported": CLIENT_AUTHENTICATION,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "service_documentation": f"{issuer}/docs",
    }


async def _answered(endpoint: str, act: Callable[[Server, Request], Answer]) -> Response:
    sent = Sent(
        endpoint=endpoint,
        address=request.remote_addr or "",
        authorization=request.headers.get("Authorization", ""),
        mimetype=request.mimetype,
        body=await request.get_data(as_text=False, cache=False, parse_form_data=False),
    )
    answer = await exchange(current_runtime(), sent, act)
    return Response(json.dumps(dict(answer.body)), answer.status, answer.headers)
