"""The authorization server: Authlib's, over our tables.

Authlib is synchronous, so it runs within `TenantSession.run_sync`, in its caller's transaction. That is committed whatever the answer is: a refused
replay has ended something.
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
from switchboard.resources.oauth.grants import Client, CodeGrant, ProofKey, RefreshGrant, Revocation
from switchboard.resources.oauth.models import OAuthClient, OAuthGrant
from switchboard.resources.oauth.token_families import ACCESS_LIFETIME, Approval, Families

GRANT_TYPES = (CodeGrant.GRANT_TYPE, RefreshGrant.GRANT_TYPE)
Token = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server answers. `location` is where the browser is sent, None for an answer with a body."""

    status: int
    body: Mapping[str, object]
    headers: dict[str, str] = field(default_factory=dict)
    location: str | None = None

    @classmethod
    def of(cls, error: OAuth2Error) -> "Answer":
        """An error as its answer, for whoever may not be sent anywhere."""
        status, body, headers = error()
        return cls(status, body, dict(headers))


class Request(OAuth2Request):
    """A request with its checked parameters. It came to `issuer`, whatever host name a proxy has made of it.

    Raises `InsecureTransportError` where the issuer is reached over plain HTTP from elsewhere than this machine.
    """

    def __init__(self, issuer: str, parameters: dict[str, str]) -> None:
        super().__init__("POST", issuer)
        self.payload: OAuth2Payload = BasicOAuth2Payload(parameters)

    @property
    def form(self) -> dict[str, str]:
        return self.payload.data


class Server(AuthorizationServer):
    """Answers one request. `client` is the application that has authenticated; none has where a user is asked for consent."""

    def __init__(self, session: Session, issuer: str, client: OAuthClient | None = None) -> None:
        super().__init__(scopes_supported=list(SCOPES))
        self.families = Families(session)
        self._issuer = issuer
        self._client = client
        self.register_token_generator("default", self._issue)  # type: ignore[arg-type]
        self.register_grant(CodeGrant, [ProofKey()])
        self.register_grant(RefreshGrant)
        self.register_endpoint(Revocation)

    def token(self, request: Request) -> Answer:
        """The token endpoint's answer."""
        if "grant_type" not in request.form:
            return self.refuse(request, InvalidRequestError("Missing grant_type."))
        if request.form["grant_type"] not in GRANT_TYPES:
            description = f"The grant_type is one of {' and '.join(GRANT_TYPES)}."
            return self.refuse(request, OAuth2Error(error="unsupported_grant_type", description=description))
        return cast("Answer", self.create_token_response(request))

    def revoke(self, request: Request) -> Answer:
        """The revocation endpoint's answer."""
        return cast("Answer", self.create_endpoint_response(Revocation.ENDPOINT_NAME, request))  # type: ignore[no-untyped-call]

    def examine(self, request: Request) -> OAuthClient:
        """The application whose request may be put before the user. Raises `OAuth2Error`; its `redirect_uri` says whether the application is told."""
        self.get_consent_grant(request)  # type: ignore[no-untyped-call]
        return cast("Client", request.client).row

    def decide(self, request: Request, approval: Approval | None) -> Answer:
        """Where the browser is sent once the user has decided; None for a refusal. Raises as `examine` does."""
        grant = self.get_consent_grant(request)  # type: ignore[no-untyped-call]
        return cast("Answer", self.create_authorization_response(request, grant_user=approval, grant=grant))

    def refuse(self, request: Request, error: OAuth2Error) -> Answer:
        """An error as its answer."""
        return cast("Answer", self.handle_error_response(request, error))

    def create_oauth2_request(self, request: Request) -> Request:
        return request

    def handle_error_response(self, request: OAuth2Request, error: OAuth2Error) -> object:
        """Authlib says nothing about a refused grant; what is said tells nobody which of the reasons it is."""
        if not error.description:
            error.description = "It is unknown, expired, used, revoked, or another client's."
        return super().handle_error_response(request, error)

    def handle_response(self, status: int, body: Mapping[str, object], headers: Collection[tuple[str, str]]) -> Answer:  # type: ignore[override]
        """`iss` goes with every answer that a browser carries, errors included (RFC 9207)."""
        named = dict(headers)
        if "Location" not in named:
            return Answer(status, body, named)
        return Answer(status, {}, location=add_params_to_uri(named["Location"], [("iss", self._issuer)]))

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Nobody listens."""

    def query_client(self, client_id: str) -> Client | None:  # type: ignore[override]
        row = self.families.client(client_id)
        return Client(row) if row else None

    def authenticate_client(self, request: OAuth2Request, methods: Collection[str], endpoint: str = "token") -> Client:
        """It has authenticated before this server was made."""
        client = Client(cast("OAuthClient", self._client))
        request.auth_method = "none" if client.is_public else "client_secret"
        return client

    def save_token(self, token: Token, request: OAuth2Request) -> None:
        """It was kept as it was made."""

    def _issue(self, *, user: OAuthGrant, scope: str, **_: object) -> Token:
        access_token, refresh_token = self.families.issue(user, scope.split())
        return {
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": int(ACCESS_LIFETIME.total_seconds()),
            "refresh_token": refresh_token,
            "scope": scope,
        }
