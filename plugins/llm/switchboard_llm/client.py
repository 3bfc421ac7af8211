"""LiteLLM, imported on first use: that takes two seconds and 130 MB, which processes without models do not pay."""

import asyncio
import gc
import importlib
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Final, TypeVar

import aiohttp
from pydantic import AliasChoices, BaseModel, Field, SecretStr, TypeAdapter, ValidationError
from switchboard.plugin_sdk import OPERATOR_ONLY, Provider, ProviderError, ProviderSettings

from switchboard_llm.vendors import Vendor

RETRYABLE = (408, 409, 425, 429)
CHECK_SECONDS = 10.0
ProviderT = TypeVar("ProviderT", bound=Provider[Any])
_loading = threading.Lock()
LATE: Final = (
    "openai.resources", "litellm.litellm_core_utils.default_encoding", "anyio._backends._asyncio",
    "litellm._service_logger", "litellm.proxy.openai_files_endpoints.common_utils",
    "litellm.llms.fal_ai.chat.transformation", "litellm.llms.edenai.chat.transformation",
)  # fmt: skip
"""Modules that LiteLLM imports with the first request, which would block the process's other calls for more than a
second.
"""


class LiteLLMSettings(ProviderSettings):
    """`api_key` if the vendor needs one; `base_url` for your own server or region; `model` if an agent names none.

    `api_version` is for Azure.
    """

    api_key: SecretStr | None = None
    base_url: str | None = Field(None, json_schema_extra=OPERATOR_ONLY)
    model: str | None = None
    embedding_model: str | None = None
    api_version: str | None = None


@cache
def import_litellm() -> Any:
    """Import LiteLLM, which blocks; `load_litellm` is for event loops."""
    # Without this, LiteLLM downloads its price map during the import.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # Plain HTTP for servers with OpenAI's protocol: OpenAI's library spends a third of a millisecond per message of
    # the conversation, in the event loop, before it sends the request.
    os.environ.setdefault("EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER", "true")
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = True
    # If a server reports no token usage, LiteLLM would download Llama's tokenizer from Hugging Face, in the event
    # loop.
    litellm.disable_hf_tokenizer_download = True
    for late in LATE:
        with suppress(ModuleNotFoundError):  # of another version
            importlib.import_module(late)
    # LiteLLM's 300,000 objects stay for good; scanning them for garbage would stop all calls for 100 ms or more every
    # few minutes.
    gc.freeze()
    return litellm


def _import_with_lock() -> Any:
    with _loading:
        return import_litellm()


async def load_litellm() -> Any:
    """Return LiteLLM, at once if it is loaded."""
    return import_litellm() if import_litellm.cache_info().currsize else await asyncio.to_thread(_import_with_lock)


def build_arguments(vendor: Vendor, settings: LiteLLMSettings, model: str) -> dict[str, object]:
    """Return the arguments of every request to a vendor. Retries are the platform's, not the library's."""
    key = settings.api_key.get_secret_value() if settings.api_key else None
    given: Mapping[str, object | None] = {
        "model": f"{vendor.route}/{model}",
        "api_key": key or (None if vendor.needs_key else "none"),
        "api_base": settings.base_url,
        "api_version": settings.api_version,
        "num_retries": 0,
        "max_retries": 0,
    }
    return {name: value for name, value in given.items() if value is not None}


def translate_error(vendor: Vendor, settings: LiteLLMSettings, error: Exception) -> ProviderError:
    """Translate a library error, with the API key removed from its message."""
    status = getattr(error, "status_code", None)
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    if settings.api_key is not None:
        message = message.replace(settings.api_key.get_secret_value(), "***")
    retryable = not isinstance(status, int) or status >= 500 or status in RETRYABLE
    return ProviderError(f"{vendor.title}: {message}", code=str(status) if status else None, retryable=retryable)


def calculate_cost(litellm: Any, vendor: Vendor, model: str, usage: Any) -> float | None:
    """Return the cost in US dollars from LiteLLM's price map; None if it lacks the model.

    `usage` is LiteLLM's `Usage`: cached prompt tokens cost a tenth to a half of others.
    """
    with suppress(Exception):  # an unknown model raises a plain Exception
        return float(
            sum(
                litellm.cost_per_token(
                    model=f"{vendor.route}/{model}",
                    prompt_tokens=usage.prompt_tokens,
                    completion_tokens=usage.completion_tokens,
                    usage_object=usage,
                )
            )
        )
    return None


def require_key(vendor: Vendor, settings: LiteLLMSettings) -> None:
    """Raise `ProviderError` if a key is needed and missing."""
    if vendor.needs_key and settings.api_key is None:
        raise ProviderError(
            f'{vendor.title} needs an API key: api_key = {{ env = "…" }} in the tenant file', retryable=False
        )


class _Named(BaseModel):
    """Entry of a list of models: OpenAI's and Anthropic's `id`, Google's and Ollama's `name`."""

    id: str = Field(validation_alias=AliasChoices("id", "name"))


class _Models(BaseModel):
    """OpenAI's and Anthropic's `data`, Google's and Ollama's `models`."""

    data: list[_Named] = Field(validation_alias=AliasChoices("data", "models"))


_MODELS: Final[TypeAdapter[_Models | list[_Named]]] = TypeAdapter(_Models | list[_Named])


def build_headers(vendor: Vendor, settings: LiteLLMSettings) -> dict[str, str]:
    """Return the headers that carry the key of a direct request."""
    if settings.api_key is None:
        return {}
    key = settings.api_key.get_secret_value()
    return {**vendor.extra_headers, vendor.key_header or "Authorization": key if vendor.key_header else f"Bearer {key}"}


async def check_model(vendor: Vendor, settings: LiteLLMSettings, model: str) -> None:
    """Ask a vendor for its models. Raises `ProviderError` for a refused key, or where it says that it lacks the model.

    Aliases without a date are listed by some vendors with it.
    """
    offered = await list_models(vendor, settings)
    if model == "default" or not offered or not vendor.lists_aliases:
        return
    if not any(name == model or name.startswith((f"{model}-", f"{model}:")) for name in offered):
        raise ProviderError(f"{vendor.title} does not offer the model {model}", retryable=False)


async def list_models(vendor: Vendor, settings: LiteLLMSettings) -> list[str]:
    """List the models of a vendor or a server; none if the list has another format. Raises `ProviderError`."""
    headers = build_headers(vendor, settings)
    address = (settings.base_url or vendor.address or "").rstrip("/")
    if not address:
        return []
    url = f"{address}{vendor.models_path}"
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


class LiteLLMProvider(Provider[LiteLLMSettings]):
    """Base of a vendor's providers over LiteLLM."""

    Settings = LiteLLMSettings
    vendor: Vendor

    async def open(self) -> None:
        require_key(self.vendor, self.settings)
        await load_litellm()

    async def check(self) -> None:
        """Ask the vendor for its models, which costs nothing and needs the key."""
        require_key(self.vendor, self.settings)
        await list_models(self.vendor, self.settings)


def create_vendor_class(kind: type[ProviderT], vendor: Vendor, noun: str) -> type[ProviderT]:
    """Create the provider class of a vendor, named after the vendor and the noun."""
    name = f"{vendor.name.title().replace('_', '')}{noun}"
    return type(name, (kind,), {"name": vendor.name, "title": vendor.title, "vendor": vendor, "__doc__": kind.__doc__})
