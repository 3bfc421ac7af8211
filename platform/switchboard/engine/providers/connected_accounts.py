"""Accounts of vendors that users connect by OAuth 2.0: the authorization code flow (RFC 6749, section 4.1) with PKCE
(RFC 7636), and the tokens that it gives (docs/decisions/0094-connected-accounts.md).

Nothing here knows the resource that uses an account, and nothing here is saved: a resource keeps the tokens encrypted.
Requests go to the addresses of an `OAuthService`, which come from a plugin and from settings of the operator.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias, TypeVar

import httpx2
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from pydantic import BaseModel, Field

from switchboard.foundation.database import now
from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.plugin_sdk import OAuthService, ProviderError

REQUEST_SECONDS: Final = 10.0
"""Seconds that a token server has for an answer."""
RENEWED_BEFORE: Final = timedelta(minutes=2)
"""Time before its end at which an access token is refreshed: longer than the use of a provider takes."""
CONSENT_LIFETIME: Final = timedelta(minutes=10)
"""Time that a user has at the vendor."""
MOST_CHARACTERS: Final = 20_000
"""Length of a token. Those of Microsoft have some thousand characters."""
VERIFIER_CHARACTERS: Final = 64
"""Length of a code verifier, which RFC 7636, section 4.1, bounds to 43 to 128."""
ENDED_GRANT: Final = frozenset({"invalid_grant", "interaction_required", "login_required", "consent_required"})
"""Error codes after which only the user's consent helps: RFC 6749, section 5.2, and
https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes.
"""
TEMPORARY: Final = frozenset({"server_error", "temporarily_unavailable", "slow_down"})
"""Error codes after which the same request may succeed."""
PLACE: Final = "connected account|consent"
Renewal: TypeAlias = Literal["", "due", "done"]
ResultT = TypeVar("ResultT")


class GrantEnded(ProviderError):
    """The vendor gives no more access tokens for the account: the user has revoked the grant, or it has expired."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="grant_ended", retryable=False)


@dataclass(frozen=True, slots=True)
class OAuthTokens:
    """Tokens of an account, which are kept as an encrypted JSON object.

    `expires_at` is the end of the access token in seconds since 1970, None if the vendor does not say. `renewal` is
    `due` if the vendor has refused the access token although it had not expired, and `done` once that token is
    replaced, until the new one is accepted.
    """

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_at: int | None = None
    renewal: Renewal = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "OAuthTokens":
        """Return the tokens from their JSON object."""
        return cls(**value)

    def must_be_refreshed(self) -> bool:
        """Return whether the access token has less than two minutes left, or was refused."""
        if self.renewal == "due":
            return True
        return self.expires_at is not None and self.expires_at < (now() + RENEWED_BEFORE).timestamp()


@dataclass(frozen=True, slots=True)
class ConsentRequest:
    """State that must come back unchanged, kept encrypted in a cookie while the user is at the vendor.

    `asker` is the user and the organization, `provider` the provider that needs the account, and `subject` the row
    whose account is connected again; empty for a new one.
    """

    asker: str
    provider: str
    subject: str
    state: str
    code_verifier: str = field(repr=False)
    expires_at: int

    def seal(self, keyring: KeyRing) -> str:
        """Encrypt for the cookie."""
        return keyring.encrypt(json.dumps(asdict(self)), PLACE)

    @classmethod
    def unseal(cls, sealed: str, keyring: KeyRing) -> "ConsentRequest | None":
        """Decrypt from the cookie; None for a cookie that is altered, of another server, or too old."""
        try:
            request = cls(**json.loads(keyring.decrypt(sealed, PLACE)))
        except SecretError:
            return None
        return request if request.expires_at > now().timestamp() else None


class _TokenAnswer(BaseModel):
    """Answer of a token endpoint (RFC 6749, section 5.1)."""

    access_token: str = Field(min_length=1, max_length=MOST_CHARACTERS)
    token_type: str = Field(pattern="(?i)^bearer$")
    refresh_token: str | None = Field(None, max_length=MOST_CHARACTERS)
    expires_in: int | None = Field(None, ge=0, le=10**9)

    def build_tokens(self, *, refresh_token: str, renewal: Renewal = "") -> OAuthTokens:
        """Return the tokens, with an earlier refresh token if the vendor gives no new one (RFC 6749, section 6)."""
        expires_at = None if self.expires_in is None else int(now().timestamp()) + self.expires_in
        return OAuthTokens(self.access_token, self.refresh_token or refresh_token, expires_at, renewal)


def begin_consent(
    service: OAuthService, redirect_uri: str, *, asker: str, provider: str, subject: str = ""
) -> tuple[str, ConsentRequest]:
    """Return the address at which the user consents, and the state to keep meanwhile."""
    state, verifier = generate_token(32), generate_token(VERIFIER_CHARACTERS)
    url = prepare_grant_uri(
        service.authorization_url,
        client_id=service.client_id,
        response_type="code",
        redirect_uri=redirect_uri,
        scope=" ".join(service.scopes),
        state=state,
        code_challenge=create_s256_code_challenge(verifier),  # type: ignore[no-untyped-call]
        code_challenge_method="S256",
        **service.authorization_parameters,
    )
    expires_at = int((now() + CONSENT_LIFETIME).timestamp())
    return str(url), ConsentRequest(asker, provider, subject, state, verifier, expires_at)


async def exchange_code(service: OAuthService, redirect_uri: str, *, code: str, code_verifier: str) -> OAuthTokens:
    """Exchange the code with which the user comes back for tokens.

    Raises `GrantEnded` for a code that the vendor does not know, and `ProviderError`, also if there is no refresh
    token: the account could not be used for longer than an hour.
    """
    answer = await _ask(
        service,
        lambda client: client.fetch_token(
            service.token_url,
            grant_type="authorization_code",
            code=code,
            redirect_uri=redirect_uri,
            code_verifier=code_verifier,
        ),
    )
    if not answer.refresh_token:
        raise ProviderError(
            "the vendor gave no lasting access to the account: it returned no refresh token", retryable=False
        )
    return answer.build_tokens(refresh_token=answer.refresh_token)


async def refresh_tokens(service: OAuthService, tokens: OAuthTokens) -> OAuthTokens:
    """Return tokens with a new access token. The earlier refresh token may be invalid afterwards.

    Raises `GrantEnded`, and `ProviderError`, which is retryable for a server that cannot be reached.
    """
    answer = await _ask(
        service, lambda client: client.refresh_token(service.token_url, refresh_token=tokens.refresh_token)
    )
    renewal: Renewal = "done" if tokens.renewal else ""
    return answer.build_tokens(refresh_token=tokens.refresh_token, renewal=renewal)


async def revoke_tokens(service: OAuthService, tokens: OAuthTokens) -> None:
    """Revoke the tokens at the vendor (RFC 7009); no effect at a vendor without an endpoint. Raises `ProviderError`."""
    if not service.revocation_url:
        return

    async def revoke(client: AsyncOAuth2Client) -> None:
        answer = await client.revoke_token(  # type: ignore[no-untyped-call]
            service.revocation_url,
            token=tokens.refresh_token,
            token_type_hint="refresh_token",  # noqa: S106 - the name of a kind
        )
        answer.raise_for_status()

    await _send(service, revoke)


async def _ask(
    service: OAuthService, request: Callable[[AsyncOAuth2Client], Awaitable[Mapping[str, object]]]
) -> _TokenAnswer:
    """Send a request for tokens. Raises `GrantEnded` and `ProviderError`."""

    async def ask(client: AsyncOAuth2Client) -> _TokenAnswer:
        return _TokenAnswer.model_validate(dict(await request(client)))

    return await _send(service, ask)


async def _send(service: OAuthService, act: Callable[[AsyncOAuth2Client], Awaitable[ResultT]]) -> ResultT:
    """Carry out requests within `REQUEST_SECONDS`. No error repeats a part of an answer, which may have a token."""
    client = AsyncOAuth2Client(
        service.client_id,
        service.client_secret.get_secret_value(),
        token_endpoint_auth_method="client_secret_post",  # noqa: S106 - the name of a method
        revocation_endpoint_auth_method="client_secret_post",
        timeout=REQUEST_SECONDS,
        trust_env=False,
    )
    try:
        async with asyncio.timeout(REQUEST_SECONDS), client:
            return await act(client)
    except OAuthError as error:
        raise _describe_refusal(str(error.error)) from None
    except httpx2.HTTPStatusError as error:
        raise ProviderError(f"the vendor's token server answers with status {error.response.status_code}") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
        raise ProviderError(f"the vendor's token server cannot be reached ({type(error).__name__})") from None
    except (ValueError, TypeError):
        raise ProviderError("the answer of the vendor's token server is not understood") from None


def _describe_refusal(code: str) -> ProviderError:
    """Return the error for an error code of RFC 6749, section 5.2. The vendor's description may repeat anything."""
    named = code if re.fullmatch(r"[\w.-]{1,64}", code, re.ASCII) else "an error without a code"
    if code in ENDED_GRANT:
        return GrantEnded(f"the access was revoked or has expired at the vendor ({named})")
    if code in TEMPORARY:
        return ProviderError(f"the vendor's token server cannot answer now ({named})")
    return ProviderError(f"the vendor's token server refuses the request ({named})", retryable=False)
