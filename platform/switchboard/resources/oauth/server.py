"""The authorization server: Authlib over the database tables.

Authlib is synchronous, so it runs within the session's `run_sync`, in its caller's transaction. The transaction commits
even if the request is refused, because a refused replay revokes a grant.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import cast

from authlib.common.urls import add_params_to_uri
from authlib.oauth2 import OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import AuthorizationServer, InvalidRequestError
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload, OAuth2Payload
from sqlalchemy.orm import Session

from switchboard.foundation.web.principal import SCOPES
from switchboard.resources.oauth.grants import CodeGrant, OAuthClientAdapter, ProofKey, RefreshGrant, Revocation
from switchboard.resources.oauth.models import OAuthClient, OAuthGrant
from switchboard.resources.oauth.token_families import ACCESS_LIFETIME, Approval, TokenFamilies

GRANT_TYPES = (CodeGrant.GRANT_TYPE, RefreshGrant.GRANT_TYPE)
Token = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class OAuthResponse:
    """The server's response. `location` is the redirect for the browser, None for a response with a body."""

    status: int
    body: Mapping[str, object]
    headers: dict[str, str] = field(default_factory=dict)
    location: str | None = None

    @classmethod
    def from_error(cls, error: OAuth2Error) -> "OAuthResponse":
        """Convert an error to a response without a redirect."""
        status, body, headers = error()
        return cls(status, body, dict(headers))


class OAuthRequest(OAuth2Request):
    """A request with its validated parameters. It came to `issuer`, whatever host name a proxy has set.

    Raises `InsecureTransportError` if the issuer uses plain HTTP and is not this machine.
    """

    def __init__(self, issuer: str, parameters: dict[str, str]) -> None:
        super().__init__("POST", issuer)
        self.payload: OAuth2Payload = BasicOAuth2Payload(parameters)

    @property
    def form(self) -> dict[str, str]:
        return self.payload.data


class OAuthServer(AuthorizationServer):
    """Serves one request. `client` is the authenticated application; None while a user is asked for consent."""

    def __init__(self, session: Session, issuer: str, client: OAuthClient | None = None) -> None:
        super().__init__(scopes_supported=list(SCOPES))
        self.families = TokenFamilies(session)
        self._issuer = issuer
        self._client = client
        self.register_token_generator("default", self._issue)  # type: ignore[arg-type]
        self.register_grant(CodeGrant, [ProofKey()])
        self.register_grant(RefreshGrant)
        self.register_endpoint(Revocation)

    def token(self, request: OAuthRequest) -> OAuthResponse:
        """Serve the token endpoint."""
        if "grant_type" not in request.form:
            return self.refuse(request, InvalidRequestError("Missing grant_type."))
        if request.form["grant_type"] not in GRANT_TYPES:
            description = f"The grant_type must be {' or '.join(GRANT_TYPES)}."
            return self.refuse(request, OAuth2Error(error="unsupported_grant_type", description=description))
        return cast("OAuthResponse", self.create_token_response(request))

    def revoke(self, request: OAuthRequest) -> OAuthResponse:
        """Serve the revocation endpoint."""
        response = self.create_endpoint_response(Revocation.ENDPOINT_NAME, request)  # type: ignore[no-untyped-call]
        return cast("OAuthResponse", response)

    def examine(self, request: OAuthRequest) -> OAuthClient:
        """Return the application whose request is valid. Raises `OAuth2Error`; its `redirect_uri` tells whether the
        error goes to the application.
        """
        self.get_consent_grant(request)  # type: ignore[no-untyped-call]
        return cast("OAuthClientAdapter", request.client).row

    def decide(self, request: OAuthRequest, approval: Approval | None) -> OAuthResponse:
        """Return the browser's redirect after the user's decision; None as approval declines. Raises what `examine`
        raises.
        """
        grant = self.get_consent_grant(request)  # type: ignore[no-untyped-call]
        return cast("OAuthResponse", self.create_authorization_response(request, grant_user=approval, grant=grant))

    def refuse(self, request: OAuthRequest, error: OAuth2Error) -> OAuthResponse:
        """Convert an error to a response."""
        return cast("OAuthResponse", self.handle_error_response(request, error))

    def create_oauth2_request(self, request: OAuthRequest) -> OAuthRequest:
        return request

    def handle_error_response(self, request: OAuth2Request, error: OAuth2Error) -> object:
        """Replace Authlib's empty description of a refused grant; the text does not tell the reasons apart."""
        if not error.description:
            error.description = "It is unknown, expired, used, revoked, or issued to another client."
        return super().handle_error_response(request, error)

    def handle_response(  # type: ignore[override]
        self, status: int, body: Mapping[str, object], headers: Collection[tuple[str, str]]
    ) -> OAuthResponse:
        """Add `iss` to every redirect, errors included (RFC 9207)."""
        named = dict(headers)
        if "Location" not in named:
            return OAuthResponse(status, body, named)
        return OAuthResponse(status, {}, location=add_params_to_uri(named["Location"], [("iss", self._issuer)]))

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Ignore Authlib's signals."""

    def query_client(self, client_id: str) -> OAuthClientAdapter | None:  # type: ignore[override]
        row = self.families.client(client_id)
        return OAuthClientAdapter(row) if row else None

    def authenticate_client(
        self, request: OAuth2Request, methods: Collection[str], endpoint: str = "token"
    ) -> OAuthClientAdapter:
        """Return the client, which has authenticated before this server was created."""
        client = OAuthClientAdapter(cast("OAuthClient", self._client))
        request.auth_method = "none" if client.is_public else "client_secret"
        return client

    def save_token(self, token: Token, request: OAuth2Request) -> None:
        """Do nothing: the token was stored when it was created."""

    def _issue(self, *, user: OAuthGrant, scope: str, **_: object) -> Token:
        access_token, refresh_token = self.families.issue(user, scope.split())
        return {
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": int(ACCESS_LIFETIME.total_seconds()),
            "refresh_token": refresh_token,
            "scope": scope,
        }
