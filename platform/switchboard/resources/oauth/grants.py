"""Authlib's grants over the database tables: look-ups of clients, codes, and tokens, and stricter rules than
Authlib's.

Error descriptions may not quote the request, because RFC 6749 allows fewer characters there; those that would are
replaced by constant ones.
"""

from typing import Protocol, cast

from authlib.oauth2 import OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import (
    AccessDeniedError,
    AuthorizationCodeMixin,
    ClientMixin,
    InvalidRequestError,
    TokenMixin,
)
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import OAuth2Payload
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc7636.challenge import compare_s256_code_challenge

from switchboard.foundation.database import now
from switchboard.foundation.web.principal import get_role_scopes
from switchboard.resources.oauth.models import OAuthClient, OAuthGrant, OAuthToken
from switchboard.resources.oauth.token_families import Approval, TokenFamilies


class GrantServer(Protocol):
    """The parts of the server that a grant needs."""

    families: TokenFamilies


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


class AuthorizationCodeAdapter(AuthorizationCodeMixin):
    """An authorization code that can be redeemed."""

    code_challenge_method = "S256"

    def __init__(self, grant: OAuthGrant) -> None:
        self.grant = grant
        self.code_challenge = grant.code_challenge

    def get_redirect_uri(self) -> str:
        return self.grant.redirect_uri

    def get_scope(self) -> str:
        return " ".join(self.grant.scopes)


class TokenAdapter(TokenMixin):
    """A token of a grant."""

    def __init__(self, grant: OAuthGrant) -> None:
        self.grant = grant

    def check_client(self, client: OAuthClientAdapter) -> bool:
        return self.grant.client_id == client.row.id

    def get_scope(self) -> str:
        return " ".join(self.grant.scopes)


class RefreshTokenAdapter(TokenAdapter):
    """A refresh token that the requesting client may use."""

    def __init__(self, grant: OAuthGrant, token: OAuthToken) -> None:
        super().__init__(grant)
        self.token = token


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

    server: GrantServer

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

    def query_authorization_code(self, code: str, client: ClientMixin) -> AuthorizationCodeAdapter | None:
        grant = self.server.families.redeemable_grant_of_code(code, cast("OAuthClientAdapter", client).row)
        return AuthorizationCodeAdapter(grant) if grant else None

    def authenticate_user(self, authorization_code: AuthorizationCodeAdapter) -> OAuthGrant:
        """Return a user for Authlib; the grant holds the details."""
        return authorization_code.grant

    def delete_authorization_code(self, authorization_code: AuthorizationCodeAdapter) -> None:
        """Keep the code's hash as long as its tokens may live, so that a replay is noticed."""
        authorization_code.grant.redeemed_at = now()


class RefreshGrant(RefreshTokenGrant):
    """Refresh (RFC 6749 section 6), with a new refresh token each time."""

    server: GrantServer
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> RefreshTokenAdapter | None:  # type: ignore[override]
        found = self.server.families.find_by_refresh_token(
            refresh_token, cast("OAuthClientAdapter", self.request.client).row
        )
        return RefreshTokenAdapter(*found) if found else None

    def authenticate_user(self, refresh_token: RefreshTokenAdapter) -> OAuthGrant:
        return refresh_token.grant

    def revoke_old_credential(self, refresh_token: TokenMixin) -> None:
        cast("RefreshTokenAdapter", refresh_token).token.used_at = now()


class Revocation(RevocationEndpoint):
    """Revocation (RFC 7009): either token of a pair ends the whole grant. The token type hint is not used."""

    server: GrantServer

    def check_params(self, request: OAuth2Request, _client: object) -> None:
        if "token" not in request.form:
            raise InvalidRequestError("Missing token.")

    def query_token(self, token_string: str, _token_type_hint: str | None) -> TokenAdapter | None:
        grant = self.server.families.find_by_token(token_string)
        return TokenAdapter(grant) if grant else None

    def revoke_token(self, token: TokenAdapter, request: OAuth2Request) -> None:
        client_id = cast("OAuthClientAdapter", request.client).get_client_id()
        self.server.families.end(
            token.grant, actor=f"user:{token.grant.user_id} via {client_id}", reason=f"{client_id} revoked its tokens"
        )


def _get_parameters(request: OAuth2Request) -> dict[str, str]:
    return cast("OAuth2Payload", request.payload).data
