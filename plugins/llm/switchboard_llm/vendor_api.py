"""Settings of a vendor, the requests that every vendor answers (its list of models, which also checks the key), and the
addresses and refusals of servers with OpenAI's wire format.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar

import aiohttp
import msgspec
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
from switchboard.plugin_sdk.retries import read_retry_after

from switchboard_llm.default_models import DEFAULT_MODELS, MODEL_ENDS, OfferedModel, Purpose, combine_ends
from switchboard_llm.model_map import load_model_map
from switchboard_llm.vendors import Vendor

RETRYABLE: Final = (408, 409, 425, 429)
"""Statuses below 500 after which the same request may succeed."""
CHECK_SECONDS: Final = 10.0
ProviderT = TypeVar("ProviderT", bound=Provider[Any])
SettingsT = TypeVar("SettingsT", bound="VendorSettings")


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
    with suppress(ValidationError):
        day: datetime | None = handler(value)
        return day
    return None


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


class VendorProvider(Provider[SettingsT]):
    """Base of a vendor's providers."""

    vendor: Vendor

    @property
    def address(self) -> str | None:
        """Base address of the vendor's API."""
        return self.settings.base_url or self.vendor.address

    async def open(self) -> None:
        require_key(self.vendor, self.settings)

    async def check(self) -> None:
        """Ask the vendor for its models, which costs nothing and needs the key."""
        require_key(self.vendor, self.settings)
        await self.fetch_models()

    async def build_headers(self) -> dict[str, str]:
        """Return the headers that carry the credentials of a request. Raises `ProviderError`."""
        return build_headers(self.vendor, self.settings)

    async def fetch_models(self) -> list[OfferedModel]:
        """Ask the vendor for its models; none if it has no address. Raises `ProviderError`."""
        return await list_models(self.vendor, self.address, await self.build_headers()) if self.address else []

    def get_listed_name(self, model: str) -> str:
        """Return the name that a model has in the vendor's list."""
        return model

    async def find_model_ends(self, models: Sequence[str]) -> Mapping[str, date]:
        """Return the ends of models, as the vendor's list, its page, or LiteLLM's map has them."""
        wanted = {model: self.get_listed_name(model) for model in models}
        return combine_ends(self.vendor.name, self.vendor.route, wanted, await self.fetch_models(), load_model_map())


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


LONGEST_REFUSAL: Final = 2**16


def build_openai_url(vendor: Vendor, settings: VendorSettings, path: str, model: str) -> str:
    """Return the address of an operation, such as `/chat/completions`. Raises `ProviderError` without a `base_url`."""
    address = (settings.base_url or vendor.address or "").rstrip("/")
    if not address:
        raise ProviderError(f"{vendor.title} needs a base_url in its settings", retryable=False)
    if settings.api_version is not None and vendor.dated_path is not None:
        return f"{address}{vendor.dated_path.format(path=path, model=model, version=settings.api_version)}"
    return f"{address}{vendor.openai_path}{path}"


async def read_refusal(vendor: Vendor, settings: VendorSettings, response: aiohttp.ClientResponse) -> ProviderError:
    """Translate an error response, without the API key that some vendors repeat."""
    status = response.status
    try:
        text = (await response.content.read(LONGEST_REFUSAL)).decode(errors="replace")
    except aiohttp.ClientError:
        text = ""
    return ProviderError(
        f"{vendor.title}: {hide_key(settings, _find_message(text) or f'HTTP {status}')}",
        code=str(status),
        retryable=status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in RETRYABLE,
        retry_after_seconds=read_retry_after(response.headers.get("Retry-After")),
    )


def hide_key(settings: VendorSettings, message: str) -> str:
    """Return a message without the API key."""
    key = settings.api_key
    return message if key is None else message.replace(key.get_secret_value(), "***")


class _Fault(msgspec.Struct):
    message: str | None = None


class _Refusal(msgspec.Struct):
    """OpenAI's `error` with a message, Ollama's that is a text, and Mistral's `message` beside it."""

    error: _Fault | str | None = None
    message: str | None = None


def _find_message(text: str) -> str:
    """Return the first line of what an error response says."""
    try:
        refusal = msgspec.json.decode(text, type=_Refusal)
    except msgspec.DecodeError:
        said = text
    else:
        fault = refusal.error
        said = (fault.message if isinstance(fault, _Fault) else fault) or refusal.message or ""
    return said.strip().splitlines()[0][:500] if said.strip() else ""
