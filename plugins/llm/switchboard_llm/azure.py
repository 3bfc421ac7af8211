"""Azure OpenAI with Microsoft Entra ID instead of a key: access tokens of an application.

https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow
"""

import asyncio
from typing import Final

import httpx2
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from pydantic import Field, SecretStr
from switchboard.plugin_sdk import OPERATOR_ONLY, ProviderError

from switchboard_llm.chat_completions import ChatCompletionsModel
from switchboard_llm.vendor_api import CHECK_SECONDS
from switchboard_llm.vendor_model import ModelSettings

AUTHORITY: Final = "https://login.microsoftonline.com"
SCOPE: Final = "https://cognitiveservices.azure.com/.default"
RENEWED_BEFORE_SECONDS: Final = 300


class AzureSettings(ModelSettings):
    """Settings of Azure OpenAI: a key, or an application of Entra ID with the role Cognitive Services OpenAI User."""

    tenant_id: str | None = Field(
        None, pattern=r"^[A-Za-z0-9.-]+$", description="Directory of the application, instead of a key."
    )
    client_id: str | None = Field(None, description="The application.")
    client_secret: SecretStr | None = Field(None, description="Its secret.")
    authority: str = Field(
        AUTHORITY, description="Address of Entra ID in a national cloud.", json_schema_extra=OPERATOR_ONLY
    )


class AzureModel(ChatCompletionsModel):
    """Deployments of Azure OpenAI."""

    Settings = AzureSettings
    settings: AzureSettings

    def __init__(self, settings: AzureSettings) -> None:
        super().__init__(settings)
        self._entra: AsyncOAuth2Client | None = None
        self._signing_in = asyncio.Lock()

    async def close(self) -> None:
        await super().close()
        if self._entra is not None:
            await self._entra.aclose()

    def require_credentials(self) -> None:
        settings = self.settings
        parts = (settings.tenant_id, settings.client_id, settings.client_secret)
        if not any(parts):
            super().require_credentials()
        elif not all(parts) or settings.api_key is not None:
            raise ProviderError(
                "Azure OpenAI needs either api_key, or all of tenant_id, client_id, and client_secret", retryable=False
            )

    async def build_headers(self) -> dict[str, str]:
        if self.settings.client_secret is None:
            return await super().build_headers()
        return {"Authorization": f"Bearer {await self._get_token(self.settings.client_secret.get_secret_value())}"}

    async def _get_token(self, secret: str) -> str:
        """Return an access token with at least five minutes left. Raises `ProviderError`."""
        async with self._signing_in:
            try:
                if self._entra is None or not self._entra.token:
                    self._entra = self._entra or self._create_client(secret)
                    await self._entra.fetch_token()
                await self._entra.ensure_active_token(self._entra.token)  # type: ignore[no-untyped-call]
            except OAuthError as error:
                raise ProviderError(
                    f"Entra ID refuses the application: {error.description}", retryable=False
                ) from error
            except (httpx2.HTTPError, ValueError) as error:
                raise ProviderError(f"Entra ID cannot be reached: {error or type(error).__name__}") from error
            return str(self._entra.token["access_token"])

    def _create_client(self, secret: str) -> AsyncOAuth2Client:
        return AsyncOAuth2Client(
            self.settings.client_id,
            secret,
            token_endpoint=f"{self.settings.authority.rstrip('/')}/{self.settings.tenant_id}/oauth2/v2.0/token",
            token_endpoint_auth_method="client_secret_post",  # noqa: S106
            grant_type="client_credentials",
            scope=SCOPE,
            leeway=RENEWED_BEFORE_SECONDS,
            timeout=CHECK_SECONDS,
        )
