"""Models of Google's Vertex AI, with a service account: Google's and Anthropic's formats, over LiteLLM."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

import aiohttp
import google.auth
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import Request
from google.oauth2 import service_account
from pydantic import Field
from switchboard.plugin_sdk import OPERATOR_ONLY, JsonObject, ProviderError
from switchboard.plugin_sdk.connection_faults import describe_connection_fault
from switchboard.plugin_sdk.google_cloud import ServiceAccountKey, read_service_account

from switchboard_llm.litellm_client import build_arguments
from switchboard_llm.litellm_model import LiteLLMModel
from switchboard_llm.model_map import load_model_map
from switchboard_llm.vendor_api import CHECK_SECONDS
from switchboard_llm.vendor_model import ModelSettings

SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
TOKEN_URL: Final = "https://oauth2.googleapis.com/token"  # noqa: S105
PROVIDERS: Final = ("vertex_ai", "vertex_ai-language-models", "vertex_ai-anthropic_models")
"""Names of Google's and Anthropic's models in LiteLLM's map."""


class VertexSettings(ModelSettings):
    """Settings of Vertex AI: a project, a location, and credentials."""

    project: str = Field(pattern=r"^[a-z0-9:.-]+$", description="Google Cloud project that is billed.")
    location: str = Field(
        "global", pattern=r"^[a-z0-9-]+$", description="`global`, a multi-region, or a region such as europe-west4."
    )
    service_account: ServiceAccountKey | None = Field(
        None, description="The JSON file of a service account's key, with the role Vertex AI User."
    )
    machine_identity: bool = Field(
        False,
        description="The credentials of this machine: its environment, or the service account of the instance.",
        json_schema_extra=OPERATOR_ONLY,
    )


class VertexModel(LiteLLMModel):
    """Models of Vertex AI in one project."""

    Settings = VertexSettings
    settings: VertexSettings

    async def check_model(self, model: str) -> None:
        """Count the tokens of a word with the model, which is free, and needs the credentials, project, and model."""
        token = await asyncio.to_thread(self._fetch_token)
        path, body = _build_count(model)
        place = f"projects/{self.settings.project}/locations/{self.settings.location}"
        timeout = aiohttp.ClientTimeout(total=CHECK_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers={"Authorization": f"Bearer {token}"}) as session,
                session.post(f"{self._address}/v1/{place}/publishers/{path}", json=body) as response,
            ):
                if response.status != HTTPStatus.OK:
                    raise await self.read_refusal(response)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ProviderError(
                f"{self.vendor.title} cannot be reached at {self._address}: {describe_connection_fault(error)}"
            ) from error

    async def list_models(self) -> Sequence[str]:
        """List the chat models of Google and Anthropic in LiteLLM's map."""
        return sorted(set(load_model_map().list_chat_models(self.vendor.route, PROVIDERS)))

    def build_arguments(self, model: str) -> dict[str, object]:
        return build_arguments(
            self.vendor,
            self.settings,
            model,
            vertex_project=self.settings.project,
            vertex_location=self.settings.location,
            vertex_credentials=self._read_account(),
        )

    @property
    def _address(self) -> str:
        """Base address of the location.

        https://cloud.google.com/vertex-ai/docs/reference/rest#rest_endpoints
        """
        if self.settings.base_url is not None:
            return self.settings.base_url.rstrip("/")
        location = self.settings.location
        if location in ("eu", "us"):
            return f"https://aiplatform.{location}.rep.googleapis.com"
        return f"https://{'' if location == 'global' else f'{location}-'}aiplatform.googleapis.com"

    def require_credentials(self) -> None:
        if (self.settings.service_account is None) != self.settings.machine_identity:
            raise ProviderError("Google Vertex AI needs one of service_account and machine_identity", retryable=False)

    def _read_account(self) -> JsonObject | None:
        """Return the key file; None for the machine's identity. The address for tokens is never taken from the file."""
        if self.settings.service_account is None:
            return None
        account = read_service_account(self.settings.service_account)
        base_url = self.settings.base_url
        return {**account.model_dump(), "token_uri": TOKEN_URL if base_url is None else f"{base_url.rstrip('/')}/token"}

    def _fetch_token(self) -> str:
        """Return an access token. Raises `ProviderError`."""
        account = self._read_account()
        credentials: Credentials
        try:
            if account is None:
                credentials, _ = google.auth.default(scopes=SCOPES)
            else:
                credentials = service_account.Credentials.from_service_account_info(  # type: ignore[no-untyped-call]
                    account, scopes=SCOPES
                )
            credentials.refresh(Request())  # type: ignore[no-untyped-call]
        except (GoogleAuthError, ValueError) as error:
            raise ProviderError(f"{self.vendor.title} refuses the credentials: {error}", retryable=False) from error
        return str(credentials.token)


def _build_count(model: str) -> tuple[str, JsonObject]:
    """Return the path and the body of a request that counts tokens.

    https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/count-tokens and, for Claude,
    https://cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/count-tokens
    """
    if model.startswith("claude"):
        body: JsonObject = {"model": model, "messages": [{"role": "user", "content": "Hello"}]}
        return "anthropic/models/count-tokens:rawPredict", body
    return f"google/models/{model}:countTokens", {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
