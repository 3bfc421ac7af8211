"""OAuth endpoints for applications: tokens, revocation, and server metadata. Their responses have the form of RFC
6749, not of `/v1`.
"""

from quart import Blueprint, Response

from switchboard.foundation.settings import Settings
from switchboard.foundation.web.openapi import AUTHORIZE, REVOKE, TOKEN
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.principal import SCOPES
from switchboard.resources.oauth.server import GRANT_TYPES, OAuthServer
from switchboard.resources.oauth.token_endpoint import TokenEndpoint

blueprint = Blueprint("oauth", __name__)
CLIENT_AUTHENTICATION = ["client_secret_basic", "client_secret_post", "none"]


@blueprint.post(TOKEN)
@inject
async def issue_token(endpoint: TokenEndpoint) -> Response:
    """Redeem an authorization code, or refresh an access token."""
    return await endpoint.respond("oauth_token", OAuthServer.token)


@blueprint.post(REVOKE)
@inject
async def revoke_token(endpoint: TokenEndpoint) -> Response:
    """Revoke a token and everything that was issued for the same grant (RFC 7009)."""
    return await endpoint.respond("oauth_revoke", OAuthServer.revoke)


@blueprint.get("/.well-known/oauth-authorization-server")
@inject
async def metadata(settings: Settings) -> dict[str, object]:
    """Return the server's metadata (RFC 8414)."""
    issuer = settings.base_url
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
