"""LiteLLM, imported when it is first needed: that takes two seconds and 130 MB, which no process pays that calls no model."""

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
"""What LiteLLM would import with the first request: more than a second, in which the process holds no other call either."""


class LiteLLMSettings(ProviderSettings):
    """`api_key` where the vendor wants one; `base_url` for a server or region of your own; `model` where an agent names none.

    `api_version` is Azure's.
    """

    api_key: SecretStr | None = None
    base_url: str | None = Field(None, json_schema_extra=OPERATOR_ONLY)
    model: str | None = None
    embedding_model: str | None = None
    api_version: str | None = None


@cache
def _imported() -> Any:
    # Without this it fetches its price map from the internet while it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # Straight over HTTP to servers that speak OpenAI's protocol: OpenAI's library looks at each message of a conversation for a third of a
    # millisecond, with the event loop held, before it asks.
    os.environ.setdefault("EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER", "true")
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = True
    # Where a server does not say how many tokens it has used, LiteLLM would ask Hugging Face how Llama counts them, with the event loop held.
    litellm.disable_hf_tokenizer_download = True
    for late in LATE:
        with suppress(ModuleNotFoundError):  # another version's
            importlib.import_module(late)
    # It stays: to look for garbage among its 300 000 objects every few minutes would hold all calls up for a tenth of a second and more.
    gc.freeze()
    return litellm


def _locked() -> Any:
    with _loading:
        return _imported()


async def load_litellm() -> Any:
    """LiteLLM, at once where it is loaded."""
    return _imported() if _imported.cache_info().currsize else await asyncio.to_thread(_locked)


def build_arguments(vendor: Vendor, settings: LiteLLMSettings, model: str) -> dict[str, object]:
    """What every request to a vendor carries. Retries are ours, not the library's."""
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
    """A library's error as ours, the key taken out of its words."""
    status = getattr(error, "status_code", None)
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    if settings.api_key is not None:
        message = message.replace(settings.api_key.get_secret_value(), "***")
    retryable = not isinstance(status, int) or status >= 500 or status in RETRYABLE
    return ProviderError(f"{vendor.title}: {message}", code=str(status) if status else None, retryable=retryable)


def calculate_cost(
    litellm: Any, vendor: Vendor, model: str, *, input_tokens: int, output_tokens: int = 0
) -> float | None:
    """US dollars from LiteLLM's price map, None where it lacks the model."""
    with suppress(Exception):  # such a model raises a plain Exception
        return float(
            sum(
                litellm.cost_per_token(
                    model=f"{vendor.route}/{model}", prompt_tokens=input_tokens, completion_tokens=output_tokens
                )
            )
        )
    return None


def require_key(vendor: Vendor, settings: LiteLLMSettings) -> None:
    """Raises `ProviderError` where a key is needed and missing."""
    if vendor.needs_key and settings.api_key is None:
        raise ProviderError(
            f'{vendor.title} needs an API key: api_key = {{ env = "…" }} in the tenant file', retryable=False
        )


class _Named(BaseModel):
    id: str


class _Models(BaseModel):
    data: list[_Named]


async def list_models(vendor: Vendor, settings: LiteLLMSettings) -> list[str]:
    """Ask an OpenAI-compatible server for its models; none of a list in another form. Raises `ProviderError`."""
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
    """What every capability of a vendor over LiteLLM has in common."""

    Settings = LiteLLMSettings
    vendor: Vendor

    async def open(self) -> None:
        require_key(self.vendor, self.settings)
        await load_litellm()

    async def check(self) -> None:
        """List the vendor's models where it is OpenAI's way of doing so: costs nothing and needs the key."""
        require_key(self.vendor, self.settings)
        if self.settings.base_url is not None:
            await list_models(self.vendor, self.settings)


def create_vendor_class(kind: type[ProviderT], vendor: Vendor) -> type[ProviderT]:
    """The class of a vendor's provider."""
    name = f"{vendor.name.title().replace('_', '')}{kind.__name__.removeprefix('Vendor')}"
    return type(name, (kind,), {"name": vendor.name, "title": vendor.title, "vendor": vendor, "__doc__": kind.__doc__})
