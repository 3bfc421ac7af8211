"""LiteLLM, imported when it is first needed: that takes two seconds and 130 MB, which no process pays that calls no model."""

import asyncio
import importlib
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from pydantic import Field, SecretStr
from switchboard.plugins import OPERATOR_ONLY, ProviderError, ProviderSettings

from switchboard_llm.vendors import Vendor

RETRYABLE = (408, 409, 425, 429)
_loading = threading.Lock()


class VendorSettings(ProviderSettings):
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
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = True
    # What it would import with the first request, a second in which the process holds no other call either.
    for late in ("openai.resources", "litellm.litellm_core_utils.default_encoding"):
        importlib.import_module(late)
    return litellm


def _locked() -> Any:
    with _loading:
        return _imported()


async def library() -> Any:
    """LiteLLM, at once where it is loaded."""
    return _imported() if _imported.cache_info().currsize else await asyncio.to_thread(_locked)


def arguments(vendor: Vendor, settings: VendorSettings, model: str) -> dict[str, object]:
    """What every request to a vendor carries. Retries are ours, not the library's."""
    key = settings.api_key.get_secret_value() if settings.api_key else None
    given: Mapping[str, object | None] = {
        "model": f"{vendor.route}/{model}",
        "api_key": key or (None if vendor.needs_key else "none"),
        "api_base": settings.base_url,
        "api_version": settings.api_version,
        "num_retries": 0,
        "max_retries": 0,
        "_skip_mcp_handler": True,
    }
    return {name: value for name, value in given.items() if value is not None}


def provider_error(vendor: Vendor, settings: VendorSettings, error: Exception) -> ProviderError:
    """A library's error as ours, the key taken out of its words."""
    status = getattr(error, "status_code", None)
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    if settings.api_key is not None:
        message = message.replace(settings.api_key.get_secret_value(), "***")
    retryable = not isinstance(status, int) or status >= 500 or status in RETRYABLE
    return ProviderError(f"{vendor.title}: {message}", code=str(status) if status else None, retryable=retryable)


def known_cost(litellm: Any, vendor: Vendor, model: str, *, input_tokens: int, output_tokens: int = 0) -> float | None:
    """US dollars from LiteLLM's price map, None where it lacks the model."""
    with suppress(Exception):  # such a model raises a plain Exception
        return float(sum(litellm.cost_per_token(model=f"{vendor.route}/{model}", prompt_tokens=input_tokens, completion_tokens=output_tokens)))
    return None


def require_key(vendor: Vendor, settings: VendorSettings) -> None:
    """Raises `ProviderError` where a key is needed and missing."""
    if vendor.needs_key and settings.api_key is None:
        raise ProviderError(f'{vendor.title} needs an API key: api_key = {{ env = "…" }} in the tenant file', retryable=False)
