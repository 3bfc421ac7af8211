"""Settings of a vendor, its list of models, which also checks the key, and requests in OpenAI's wire format."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import date, datetime
from http import HTTPStatus
from typing import Annotated, Any, ClassVar, Final, TypeVar

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

from switchboard_llm.default_models import DEFAULT_MODELS, MODEL_ENDS, Purpose, find_known_end
from switchboard_llm.model_map import load_model_map
from switchboard_llm.vendors import VENDORS, Vendor

RETRYABLE: Final = (408, 409, 425, 429)
"""Statuses below 500 after which the same request may succeed."""
CHECK_SECONDS: Final = 10.0
CONNECT_SECONDS: Final = 10.0
LONGEST_REFUSAL: Final = 2**16
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

    def hide_key(self, message: str) -> str:
        """Return a message without the API key, which some vendors repeat."""
        return message if self.api_key is None else message.replace(self.api_key.get_secret_value(), "***")


def _ignore_unknown_days(value: object, handler: ValidatorFunctionWrapHandler) -> datetime | None:
    with suppress(ValidationError):
        day: datetime | None = handler(value)
        return day
    return None


class OfferedModel(BaseModel):
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

    @property
    def name(self) -> str:
        """The name by which the model is asked for."""
        return self.id.removeprefix("models/")


class _Models(BaseModel):
    """OpenAI's and Anthropic's `data`, Google's and Ollama's `models`, Bedrock's `modelSummaries`."""

    data: list[OfferedModel] = Field(validation_alias=AliasChoices("data", "models", "modelSummaries"))


_MODELS: Final[TypeAdapter[_Models | list[OfferedModel]]] = TypeAdapter(_Models | list[OfferedModel])


class _Fault(msgspec.Struct):
    message: str | None = None


class _Refusal(msgspec.Struct):
    """OpenAI's `error` with a message, Ollama's that is a text, and Mistral's `message` beside it."""

    error: _Fault | str | None = None
    message: str | None = None


class VendorProvider(Provider[SettingsT]):
    """Base of a vendor's providers. Requests share a session, which the first one opens."""

    vendor: Vendor
    default_model: ClassVar[str]
    deadlines: ClassVar[aiohttp.ClientTimeout] = aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS)

    def __init__(self, settings: SettingsT) -> None:
        super().__init__(settings)
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        self.require_credentials()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def check(self) -> None:
        """Ask the vendor for its models, which costs nothing and needs the key."""
        self.require_credentials()
        await self.fetch_models()

    def require_credentials(self) -> None:
        """Raise `ProviderError` if the settings lack what a request needs."""
        if self.vendor.needs_key and self.settings.api_key is None:
            raise ProviderError(
                f'{self.vendor.title} needs an API key: api_key = {{ env = "…" }} in the tenant file', retryable=False
            )

    async def build_headers(self) -> dict[str, str]:
        """Return the headers that carry the credentials of a request. Raises `ProviderError`."""
        if self.settings.api_key is None:
            return {}
        key, name = self.settings.api_key.get_secret_value(), self.vendor.key_header
        return {**self.vendor.extra_headers, name or "Authorization": key if name else f"Bearer {key}"}

    async def fetch_models(self) -> list[OfferedModel]:
        """Ask the vendor for its models; none if it has no address, or its list has another format.

        Raises `ProviderError`.
        """
        address = self.settings.base_url or self.vendor.address
        return await self.list_models_at(address, await self.build_headers()) if address else []

    async def list_models_at(self, address: str, headers: Mapping[str, str]) -> list[OfferedModel]:
        """List the models at an address; none if the list has another format. Raises `ProviderError`."""
        title, url = self.vendor.title, f"{address.rstrip('/')}{self.vendor.models_path}"
        try:
            timeout = aiohttp.ClientTimeout(total=CHECK_SECONDS)
            async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, headers=headers) as response:
                if (status := response.status) >= 400:
                    message = f"{title} answered {status} to a list of its models"
                    raise ProviderError(message, code=str(status), retryable=False)
                listed = _MODELS.validate_json(await response.read())
        except ValidationError:
            return []
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ProviderError(
                f"{title} cannot be reached at {address}: {describe_connection_fault(error)}"
            ) from error
        return listed if isinstance(listed, list) else listed.data

    def get_listed_name(self, model: str) -> str:
        """Return the name that a model has in the vendor's list."""
        return model

    async def find_model_ends(self, models: Sequence[str]) -> Mapping[str, date]:
        """Return the ends of models, as the vendor's list has them, else its page, else LiteLLM's map."""
        told = {offer.name: offer.end.date() for offer in await self.fetch_models() if offer.end is not None}
        ends = {
            model: told.get(self.get_listed_name(model)) or find_known_end(self.vendor, model, load_model_map())
            for model in models
        }
        return {model: end for model, end in ends.items() if end is not None}

    def build_url(self, path: str, model: str) -> str:
        """Return the address of an operation of OpenAI's wire format, such as `/chat/completions`.

        Raises `ProviderError` without a `base_url`.
        """
        address = (self.settings.base_url or self.vendor.address or "").rstrip("/")
        if not address:
            raise ProviderError(f"{self.vendor.title} needs a base_url in its settings", retryable=False)
        if self.settings.api_version is not None and self.vendor.dated_path is not None:
            dated_path = self.vendor.dated_path.format(path=path, model=model, version=self.settings.api_version)
            return f"{address}{dated_path}"
        return f"{address}{self.vendor.openai_path}{path}"

    @asynccontextmanager
    async def request(self, method: str, url: str, **options: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield its successful response. Leaving early closes the connection, which stops the
        vendor. Raises `ProviderError`, also for an error of the connection in the block.
        """
        if self._session is None:
            # No limit of connections: each call has one of its own.
            connector = aiohttp.TCPConnector(limit=0)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        headers, options["timeout"] = await self.build_headers(), self.deadlines
        try:
            async with self._session.request(
                method, url, headers=headers, allow_redirects=False, **options
            ) as response:
                if response.status != HTTPStatus.OK:
                    raise await self.read_refusal(response)
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ProviderError(f"{self.vendor.title} cannot be reached: {describe_connection_fault(error)}") from error

    async def read_refusal(self, response: aiohttp.ClientResponse) -> ProviderError:
        """Translate an error response."""
        status = response.status
        try:
            text = (await response.content.read(LONGEST_REFUSAL)).decode(errors="replace")
        except aiohttp.ClientError:
            text = ""
        return ProviderError(
            f"{self.vendor.title}: {self.settings.hide_key(_find_message(text) or f'HTTP {status}')}",
            code=str(status),
            retryable=status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in RETRYABLE,
            retry_after_seconds=read_retry_after(response.headers.get("Retry-After")),
        )


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


def create_vendor_class(kind: type[ProviderT], vendor: Vendor, noun: str, purpose: Purpose) -> type[ProviderT]:
    """Create the provider class of a vendor for a purpose, named after the vendor and the noun."""
    attributes: dict[str, object] = {
        "name": vendor.name,
        "title": vendor.title,
        "vendor": vendor,
        "default_model": DEFAULT_MODELS.list_models(purpose)[vendor.name],
        "model_ends": MODEL_ENDS.get(vendor.name, {}),
        "__doc__": kind.__doc__,
    }
    return type(f"{vendor.name.title().replace('_', '')}{noun}", (kind,), attributes)


def create_vendor_classes(kind: type[ProviderT], noun: str, purpose: Purpose) -> list[type[ProviderT]]:
    """Create the provider class of each vendor that has a default model for a purpose."""
    models = DEFAULT_MODELS.list_models(purpose)
    return [create_vendor_class(kind, vendor, noun, purpose) for vendor in VENDORS if vendor.name in models]
