"""Models of AWS Bedrock, with AWS's own credentials: its Converse API, over LiteLLM.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import BotoCoreError
from pydantic import Field, SecretStr
from switchboard.plugin_sdk import OPERATOR_ONLY, ProviderError

from switchboard_llm.litellm_client import build_arguments
from switchboard_llm.litellm_model import LiteLLMModel
from switchboard_llm.vendor_api import OfferedModel
from switchboard_llm.vendor_model import ModelSettings
from switchboard_llm.vendors import Vendor

PROFILE: Final = re.compile(r"^(global|us|us-gov|eu|apac|jp|au|ca)\.")
"""Prefix of an inference profile, which is a model in several regions."""
CACHING: Final = ("anthropic.", "amazon.nova")
"""Models that accept marks of what to cache.

https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html
"""


class BedrockSettings(ModelSettings):
    """Settings of Bedrock: a region, and one kind of credentials."""

    region: str = Field(pattern=r"^[a-z]{2,3}(-[a-z]+)+-[0-9]$", description="AWS region, such as eu-central-1.")
    api_key: SecretStr | None = Field(None, description="A Bedrock API key, instead of an access key.")
    access_key_id: SecretStr | None = Field(None, description="Access key of an IAM user or role.")
    secret_access_key: SecretStr | None = Field(None, description="Its secret.")
    session_token: SecretStr | None = Field(None, description="The token of temporary credentials.")
    machine_identity: bool = Field(
        False,
        description="The credentials of this machine: its environment, profile, or instance role.",
        json_schema_extra=OPERATOR_ONLY,
    )


class BedrockModel(LiteLLMModel):
    """Models of Bedrock in one region."""

    Settings = BedrockSettings
    settings: BedrockSettings

    async def check_model(self, model: str) -> None:
        """Ask for the region's models, which costs nothing and needs the permission `bedrock:ListFoundationModels`."""
        if model.startswith("arn:"):
            await self.fetch_models()
        else:
            await super().check_model(model)

    async def list_models(self) -> Sequence[str]:
        """List the region's foundation models; an inference profile has a prefix, such as `eu.`, before the name."""
        return sorted(offer.name for offer in await self.fetch_models())

    def get_listed_name(self, model: str) -> str:
        return PROFILE.sub("", model)

    async def fetch_models(self) -> list[OfferedModel]:
        """List the region's models, by a signed request unless there is an API key.

        https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
        """
        address = self.settings.base_url or f"https://bedrock.{self.settings.region}.amazonaws.com"
        if self.settings.api_key is not None:
            return await self.list_models_at(address, await self.build_headers())
        request = AWSRequest("GET", f"{address.rstrip('/')}{self.vendor.models_path}")
        SigV4Auth(await self._find_credentials(), "bedrock", self.settings.region).add_auth(request)
        return await self.list_models_at(address, dict(request.headers))

    def describe_vendor(self, model: str) -> Vendor:
        return replace(self.vendor, caches_marked=self.get_listed_name(model).startswith(CACHING))

    def build_arguments(self, model: str) -> dict[str, object]:
        return build_arguments(
            self.vendor,
            self.settings,
            f"converse/{model}",
            aws_region_name=self.settings.region,
            aws_access_key_id=self.settings.access_key_id,
            aws_secret_access_key=self.settings.secret_access_key,
            aws_session_token=self.settings.session_token,
        )

    def require_credentials(self) -> None:
        settings = self.settings
        if (settings.access_key_id is None) != (settings.secret_access_key is None):
            raise ProviderError("AWS Bedrock needs both access_key_id and secret_access_key", retryable=False)
        given = (settings.api_key is not None, settings.access_key_id is not None, settings.machine_identity)
        if given.count(True) != 1:
            raise ProviderError(
                "AWS Bedrock needs one of api_key, access_key_id with secret_access_key, and machine_identity",
                retryable=False,
            )

    async def _find_credentials(self) -> ReadOnlyCredentials:
        settings = self.settings
        if settings.access_key_id is not None:
            given = (settings.access_key_id, settings.secret_access_key, settings.session_token)
            return ReadOnlyCredentials(*(None if secret is None else secret.get_secret_value() for secret in given))
        try:
            found = await asyncio.to_thread(lambda: boto3.Session().get_credentials())
        except BotoCoreError as error:
            raise ProviderError(f"AWS Bedrock: {error}", retryable=False) from error
        if found is None:
            raise ProviderError("AWS Bedrock: this machine has no AWS credentials", retryable=False)
        return await asyncio.to_thread(found.get_frozen_credentials)
