"""Accounts of a vendor that users connect by OAuth 2.0."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import Field, SecretStr

from switchboard.plugin_sdk.provider import ProviderSettings


@dataclass(frozen=True, slots=True)
class OAuthService:
    """Addresses at which a vendor's accounts are connected, by the authorization code flow (RFC 6749, section 4.1) with
    PKCE (RFC 7636), and the operator's registration there.

    `authorization_parameters` are added to the request for authorization, such as `access_type` at Google.
    `revocation_url` is the endpoint of RFC 7009, empty if the vendor has none.
    """

    authorization_url: str
    token_url: str
    client_id: str
    client_secret: SecretStr
    scopes: tuple[str, ...]
    authorization_parameters: Mapping[str, str] = field(default_factory=dict)
    revocation_url: str = ""


class OAuthAccount(ProviderSettings):
    """An account whose tokens the platform gets, keeps encrypted, refreshes, and revokes."""

    access_token: SecretStr = Field(description="Access token of the account, which the platform refreshes.")
