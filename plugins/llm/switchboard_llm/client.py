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
from pydantic import BaseModel, Field, SecretStr, ValidationError
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
def _import_litellm() -> Any:
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
        return _import_litellm()


async def load_litellm() -> Any:
    """Return LiteLLM, at once if it is loaded."""
    return _import_litellm() if _import_litellm.cache_info().currsize else await asyncio.to_thread(_import_with_lock)


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


def calculate_cost(
    litellm: Any, vendor: Vendor, model: str, *, input_tokens: int, output_tokens: int = 0
) -> float | None:
    """Return the cost in US dollars from LiteLLM's price map; None if it lacks the model."""
    with suppress(Exception):  # an unknown model raises a plain Exception
        return float(
            sum(
                litellm.cost_per_token(
                    model=f"{vendor.route}/{model}", prompt_tokens=input_tokens, completion_tokens=output_tokens
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
    id: str


class _Models(BaseModel):
    data: list[_Named]


async def list_models(vendor: Vendor, settings: LiteLLMSettings) -> list[str]:
    """List the models of an OpenAI-compatible server; none if the list has another format. Raises `ProviderError`."""
    headers = {"Authorization": f"Bearer {settings.api_key.get_secret_value()}"} if settings.api_key else {}
    url = f"{(settings.base_url or '').rstrip('/')}/models"
    try:
        timeout = aiohttp.ClientTimeout(total=CHECK_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, headers=headers) as response:
            if response.status >= 400:
                raise ProviderError(
                    f"{vendor.title} answered {response.status} to a list of its models",
                    code=str(response.status),
                    retryable=False,
                )
            return sorted(model.id for model in _Models.model_validate_json(await response.read()).data)
    except ValidationError:
        return []
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ProviderError(f"{vendor.title} cannot be reached at {settings.base_url}: {error}") from error


class LiteLLMProvider(Provider[LiteLLMSettings]):
    """Base of a vendor's providers over LiteLLM."""

    Settings = LiteLLMSettings
    vendor: Vendor

    async def open(self) -> None:
        require_key(self.vendor, self.settings)
        await load_litellm()

    async def check(self) -> None:
        """List the vendor's models if it supports OpenAI's way, which costs nothing and needs the key."""
        require_key(self.vendor, self.settings)
        if self.settings.base_url is not None:
            await list_models(self.vendor, self.settings)


def create_vendor_class(kind: type[ProviderT], vendor: Vendor) -> type[ProviderT]:
    """Create the provider class of a vendor."""
    name = f"{vendor.name.title().replace('_', '')}{kind.__name__.removeprefix('Vendor')}"
    return type(name, (kind,), {"name": vendor.name, "title": vendor.title, "vendor": vendor, "__doc__": kind.__doc__})
