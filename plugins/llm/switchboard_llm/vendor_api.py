"""Settings of a vendor, and the requests that every vendor answers: its list of models, which also checks the key."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import aiohttp
from pydantic import AliasChoices, BaseModel, Field, SecretStr, TypeAdapter, ValidationError
from switchboard.plugin_sdk import OPERATOR_ONLY, Provider, ProviderError, ProviderSettings

from switchboard_llm.vendors import Vendor

RETRYABLE: Final = (408, 409, 425, 429)
"""Statuses below 500 after which the same request may succeed."""
CHECK_SECONDS: Final = 10.0
ProviderT = TypeVar("ProviderT", bound=Provider[Any])


class VendorSettings(ProviderSettings):
    """Settings of every provider of a vendor."""

    api_key: SecretStr | None = Field(None, description="An API key, if the vendor needs one.")
    base_url: str | None = Field(
        None, description="Address of your own server, or of a region.", json_schema_extra=OPERATOR_ONLY
    )
    model: str | None = Field(None, description="Model for agents that name none.")
    embedding_model: str | None = Field(None, description="Embedding model for knowledge bases that name none.")
    api_version: str | None = Field(None, description="Version of the API, for Azure.")


def require_key(vendor: Vendor, settings: VendorSettings) -> None:
    """Raise `ProviderError` if a key is needed and missing."""
    if vendor.needs_key and settings.api_key is None:
        raise ProviderError(
            f'{vendor.title} needs an API key: api_key = {{ env = "…" }} in the tenant file', retryable=False
        )


class _Named(BaseModel):
    """Entry of a list of models: OpenAI's and Anthropic's `id`, Google's and Ollama's `name`, Bedrock's `modelId`."""

    id: str = Field(validation_alias=AliasChoices("id", "name", "modelId"))


class _Models(BaseModel):
    """OpenAI's and Anthropic's `data`, Google's and Ollama's `models`, Bedrock's `modelSummaries`."""

    data: list[_Named] = Field(validation_alias=AliasChoices("data", "models", "modelSummaries"))


_MODELS: Final[TypeAdapter[_Models | list[_Named]]] = TypeAdapter(_Models | list[_Named])


def build_headers(vendor: Vendor, settings: VendorSettings) -> dict[str, str]:
    """Return the headers that carry the key of a direct request."""
    if settings.api_key is None:
        return {}
    key = settings.api_key.get_secret_value()
    return {**vendor.extra_headers, vendor.key_header or "Authorization": key if vendor.key_header else f"Bearer {key}"}


async def check_key(vendor: Vendor, settings: VendorSettings) -> None:
    """Ask a vendor for its models, which costs nothing and needs the key. Raises `ProviderError`."""
    require_key(vendor, settings)
    if address := settings.base_url or vendor.address:
        await list_models(vendor, address, build_headers(vendor, settings))


def require_offered(vendor: Vendor, model: str, offered: Sequence[str]) -> None:
    """Raise `ProviderError` if a vendor's list of models lacks one. Some vendors list aliases with a date."""
    if model == "default" or not offered or not vendor.lists_aliases:
        return
    if not any(name == model or name.startswith((f"{model}-", f"{model}:")) for name in offered):
        raise ProviderError(f"{vendor.title} does not offer the model {model}", retryable=False)


async def list_models(vendor: Vendor, address: str, headers: Mapping[str, str]) -> list[str]:
    """List the models at a vendor's address; none if the list has another format. Raises `ProviderError`."""
    url = f"{address.rstrip('/')}{vendor.models_path}"
    try:
        timeout = aiohttp.ClientTimeout(total=CHECK_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, headers=headers) as response:
            if response.status >= 400:
                raise ProviderError(
                    f"{vendor.title} answered {response.status} to a list of its models",
                    code=str(response.status),
                    retryable=False,
                )
            listed = _MODELS.validate_json(await response.read())
            models = listed if isinstance(listed, list) else listed.data
            return [model.id.removeprefix("models/") for model in models]
    except ValidationError:
        return []
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ProviderError(f"{vendor.title} cannot be reached at {address}: {error}") from error


def create_vendor_class(kind: type[ProviderT], vendor: Vendor, noun: str) -> type[ProviderT]:
    """Create the provider class of a vendor, named after the vendor and the noun."""
    name = f"{vendor.name.title().replace('_', '')}{noun}"
    return type(name, (kind,), {"name": vendor.name, "title": vendor.title, "vendor": vendor, "__doc__": kind.__doc__})
