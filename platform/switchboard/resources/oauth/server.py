"""The authorization server: Authlib over the database tables.

Authlib is synchronous, so it runs within the session's `run_sync`, in its caller's transaction. The transaction commits
even if the request is refused, because a refused replay revokes a grant.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import cast

from authlib.common.urls import add_params_to_uri
from authlib.oauth2 import OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import (
    AccessDeniedError,
    AuthorizationCodeMixin,
    AuthorizationServer,
    ClientMixin,
    InvalidRequestError,
    TokenMixin,
)
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload, OAuth2Payload
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc7636.challenge import compare_s256_code_challenge
from sqlalchemy.orm import Session

from switchboard.foundation.database import now
from switchboard.foundation.web.principal import SCOPES, get_role_scopes
from switchboard.resources.identity.authentication import digest
from switchboard.resources.oauth.models import OAuthClient, OAuthGrant
from switchboard.resources.oauth.queries import find_application, lock_grant_by_token
from switchboard.resources.oauth.token_families import ACCESS_LIFETIME, Approval, TokenFamilies

# Authlib's grants: look-ups of clients, codes, and tokens, and stricter rules than Authlib's.
#
# Error descriptions may not quote the request, because RFC 6749 allows fewer characters there; those that would are
# replaced by constant ones.


class OAuthClientAdapter(ClientMixin):
    """An application. Each may use every grant and ask for every scope: the user decides."""

    def __init__(self, row: OAuthClient) -> None:
        self.row = row

    @property
    def is_public(self) -> bool:
        """Return whether the application has no secret."""
        return self.row.secret_hash is None

    def get_client_id(self) -> str:
        return self.row.client_id

    def get_allowed_scope(self, scope: object) -> str | None:  # type: ignore[override]
        """Return the requested scopes; None for no scope at all, which Authlib refuses."""
        return " ".join(sorted(set(str(scope).split()))) if scope else None

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Compare redirect URIs character by character (RFC 9700 section 2.1)."""
        return redirect_uri in self.row.redirect_uris

    def check_response_type(self, _response_type: str) -> bool:
        return True

    def check_grant_type(self, _grant_type: str) -> bool:
        return True


class GrantAdapter(AuthorizationCodeMixin, TokenMixin):
    """A grant, in the place of its authorization code and of its tokens."""

    code_challenge_method = "S256"

    def __init__(self, grant: OAuthGrant) -> None:
        self.row = grant
        self.code_challenge = grant.code_challenge

    def check_client(self, client: OAuthClientAdapter) -> bool:
        return self.row.client_id == client.row.id

    def get_redirect_uri(self) -> str:
        return self.row.redirect_uri

    def get_scope(self) -> str:
        return " ".join(self.row.scopes)


class ProofKey(CodeChallenge):
    """PKCE: S256 only, and required for public clients (RFC 9700 section 2.1.1)."""

    DEFAULT_CODE_CHALLENGE_METHOD = "S256"
    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]  # noqa: RUF012 - Authlib's own
    CODE_CHALLENGE_METHODS = {"S256": compare_s256_code_challenge}  # noqa: RUF012

    def validate_code_challenge(self, grant: AuthorizationCodeGrant, redirect_uri: str) -> None:
        """Validate the code challenge before the user is asked for consent."""
        request = grant.request
        given = _get_parameters(request)
        if "code_challenge" in given and given.get("code_challenge_method") != "S256":
            raise InvalidRequestError("The code_challenge_method must be S256.")
        if "code_challenge" not in given and cast("OAuthClientAdapter", request.client).is_public:
            raise InvalidRequestError("A client without a secret must send a code_challenge.")
        super().validate_code_challenge(grant, redirect_uri)


class CodeGrant(AuthorizationCodeGrant):
    """The authorization code flow (RFC 6749 section 4.1)."""

    server: "OAuthServer"

    @classmethod
    def check_authorization_endpoint(cls, _request: OAuth2Request) -> bool:
        """Match every request, so that another response type is refused below."""
        return True

    @staticmethod
    def validate_authorization_redirect_uri(request: OAuth2Request, client: ClientMixin) -> str:
        """Validate the redirect URI. A request that fails here is not redirected."""
        redirect_uri = _get_parameters(request).get("redirect_uri")
        if redirect_uri is None:
            raise InvalidRequestError("Missing redirect_uri.")
        if not client.check_redirect_uri(redirect_uri):
            raise InvalidRequestError("The redirect_uri is not registered for the application.")
        return redirect_uri

    def validate_authorization_request(self) -> str:
        """Validate the rest of the request; errors go to the application.

        A request without state is refused: its sender could not tell a response from a forged one.
        """
        redirect_uri = super().validate_authorization_request()
        given = _get_parameters(self.request)
        for name in ("response_type", "state"):
            if name not in given:
                raise InvalidRequestError(f"Missing {name}.", redirect_uri=redirect_uri)
        if given["response_type"] != "code":
            description = "The only response_type is code."
            raise OAuth2Error(error="unsupported_response_type", description=description, redirect_uri=redirect_uri)
        return redirect_uri

    def save_authorization_code(self, code: str, request: OAuth2Request) -> None:
        given, client, approval = (
            _get_parameters(request),
            cast("OAuthClientAdapter", request.client),
            cast("Approval", request.user),
        )
        # Fewer scopes than requested may be granted; the token response lists them (RFC 6749 section 3.3).
        scopes = [scope for scope in request.scope.split() if scope in get_role_scopes(approval.role)]
        if not scopes:
            raise AccessDeniedError(
                "Your role in the organization does not let you allow this.", redirect_uri=given["redirect_uri"]
            )
        self.server.families.begin(
            approval,
            client.row,
            code,
            redirect_uri=given["redirect_uri"],
            scopes=scopes,
            challenge=given.get("code_challenge"),
        )

    def query_authorization_code(self, code: str, client: ClientMixin) -> GrantAdapter | None:
        grant = self.server.families.redeemable_grant_of_code(code, cast("OAuthClientAdapter", client).row)
        return GrantAdapter(grant) if grant else None

    def authenticate_user(self, authorization_code: GrantAdapter) -> OAuthGrant:
        """Return a user for Authlib; the grant holds the details."""
        return authorization_code.row

    def delete_authorization_code(self, authorization_code: GrantAdapter) -> None:
        """Keep the code's hash as long as its tokens may live, so that a replay is noticed."""
        authorization_code.row.redeemed_at = now()


class RefreshGrant(RefreshTokenGrant):
    """Refresh (RFC 6749 section 6), with a new refresh token each time."""

    server: "OAuthServer"
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> GrantAdapter | None:  # type: ignore[override]
        client = cast("OAuthClientAdapter", self.request.client)
        found = self.server.families.find_by_refresh_token(refresh_token, client.row)
        if found is None:
            return None
        grant, self._token = found
        return GrantAdapter(grant)

    def authenticate_user(self, refresh_token: GrantAdapter) -> OAuthGrant:
        return refresh_token.row

    def revoke_old_credential(self, refresh_token: TokenMixin) -> None:
        self._token.used_at = now()


class Revocation(RevocationEndpoint):
    """Revocation (RFC 7009): either token of a pair ends the whole grant. The token type hint is not used."""

    server: "OAuthServer"

    def check_params(self, request: OAuth2Request, _client: object) -> None:
        if "token" not in request.form:
            raise InvalidRequestError("Missing token.")

    def query_token(self, token_string: str, _token_type_hint: str | None) -> GrantAdapter | None:
        grant = lock_grant_by_token(self.server.families.session, digest(token_string))
        return GrantAdapter(grant) if grant else None

    def revoke_token(self, token: GrantAdapter, request: OAuth2Request) -> None:
        client_id = cast("OAuthClientAdapter", request.client).get_client_id()
        self.server.families.end(
            token.row, actor=f"user:{token.row.user_id} via {client_id}", reason=f"{client_id} revoked its tokens"
        )


def _get_parameters(request: OAuth2Request) -> dict[str, str]:
    return cast("OAuth2Payload", request.payload).data


GRANT_TYPES = (CodeGrant.GRANT_TYPE, RefreshGrant.GRANT_TYPE)
Token = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class OAuthResponse:
    """The server's response. `location` is the redirect for the browser, None for a response with a body."""

    status: int
    body: Mapping[str, object]
    headers: dict[str, str] = field(default_factory=dict)
    location: str | None = None


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
        row = find_application(self.families.session, client_id)
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
