"""Settings of a vendor, and the requests that every vendor answers: its list of models, which also checks the key."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, Final, TypeVar

import aiohttp
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from switchboard.plugin_sdk import OPERATOR_ONLY, Provider, ProviderError, ProviderSettings
from switchboard.plugin_sdk.connection_faults import describe_connection_fault

from switchboard_llm.default_models import DEFAULT_MODELS, Purpose
from switchboard_llm.model_ends import MODEL_ENDS, OfferedModel, combine_ends
from switchboard_llm.model_map import load_model_map
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


def _ignore_unknown_days(value: object, handler: ValidatorFunctionWrapHandler) -> datetime | None:
    try:
        day: datetime | None = handler(value)
    except ValidationError:
        return None
    return day


class _Named(BaseModel):
    """Entry of a list of models: OpenAI's and Anthropic's `id`, Google's and Ollama's `name`, Bedrock's `modelId`.

    `end` is when the model ends: OpenAI's `shutdown_date` (https://developers.openai.com/api/docs/deprecations),
    Azure's `deprecation.inference` in seconds since 1970
    (https://learn.microsoft.com/rest/api/azureopenai/models/list),
    Mistral's `deprecation` (`BaseModelCard` of github.com/mistralai/client-python), and Bedrock's
    `modelLifecycle.endOfLifeTime`
    (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_FoundationModelLifecycle.html).
    """

    id: str = Field(validation_alias=AliasChoices("id", "name", "modelId"))
    end: Annotated[datetime | None, WrapValidator(_ignore_unknown_days)] = Field(
        None,
        validation_alias=AliasChoices(
            "shutdown_date",
            AliasPath("deprecation", "inference"),
            "deprecation",
            AliasPath("modelLifecycle", "endOfLifeTime"),
        ),
    )

    def describe(self) -> OfferedModel:
        return OfferedModel(self.id.removeprefix("models/"), None if self.end is None else self.end.date())


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
    await fetch_models(vendor, settings)


async def fetch_models(vendor: Vendor, settings: VendorSettings) -> list[OfferedModel]:
    """Ask a vendor for its models; none if it has no address. Raises `ProviderError`."""
    address = settings.base_url or vendor.address
    return await list_models(vendor, address, build_headers(vendor, settings)) if address else []


async def find_listed_ends(vendor: Vendor, settings: VendorSettings, models: Sequence[str]) -> dict[str, date]:
    """Return the ends of models, as the vendor's list, its page, or LiteLLM's map has them. Raises `ProviderError`."""
    offered = await fetch_models(vendor, settings)
    return combine_ends(vendor.name, vendor.route, {model: model for model in models}, offered, load_model_map())


def require_offered(vendor: Vendor, model: str, offered: Sequence[OfferedModel]) -> None:
    """Raise `ProviderError` if a vendor's list of models lacks one. Some vendors list aliases with a date."""
    if model == "default" or not offered or not vendor.lists_aliases:
        return
    if not any(offer.name == model or offer.name.startswith((f"{model}-", f"{model}:")) for offer in offered):
        raise ProviderError(f"{vendor.title} does not offer the model {model}", retryable=False)


async def list_models(vendor: Vendor, address: str, headers: Mapping[str, str]) -> list[OfferedModel]:
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
            return [model.describe() for model in models]
    except ValidationError:
        return []
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ProviderError(
            f"{vendor.title} cannot be reached at {address}: {describe_connection_fault(error)}"
        ) from error


def create_vendor_class(kind: type[ProviderT], vendor: Vendor, noun: str, purpose: Purpose) -> type[ProviderT]:
    """Create the provider class of a vendor for a purpose, named after the vendor and the noun."""
    attributes: dict[str, object] = {
        "name": vendor.name,
        "title": vendor.title,
        "vendor": vendor,
        "default_model": DEFAULT_MODELS.find(purpose, vendor.name),
        "model_ends": MODEL_ENDS.get(vendor.name, {}),
        "__doc__": kind.__doc__,
    }
    return type(f"{vendor.name.title().replace('_', '')}{noun}", (kind,), attributes)
