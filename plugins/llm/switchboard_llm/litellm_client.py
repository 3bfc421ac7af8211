"""LiteLLM, imported on first use: that takes two seconds and 130 MB, which processes without models do not pay."""

import asyncio
import gc
import importlib
import os
import threading
from contextlib import suppress
from functools import cache
from typing import Any, Final

from pydantic import SecretStr
from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.retries import read_retry_after

from switchboard_llm.vendor_api import RETRYABLE, VendorSettings
from switchboard_llm.vendors import Vendor

_loading = threading.Lock()
LATE: Final = (
    "openai.resources", "litellm.litellm_core_utils.default_encoding", "anyio._backends._asyncio",
    "litellm._service_logger", "litellm.proxy.openai_files_endpoints.common_utils",
    "litellm.llms.fal_ai.chat.transformation", "litellm.llms.edenai.chat.transformation",
)  # fmt: skip
"""Modules that LiteLLM imports with the first request, which would block the process's other calls for more than a
second.
"""


@cache
def _import_litellm() -> Any:
    """Import LiteLLM, which blocks; event loops call `load_litellm`."""
    # Without this, LiteLLM downloads its price map during the import.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # Plain HTTP for servers with OpenAI's protocol: OpenAI's library spends a third of a millisecond per message of
    # the conversation, in the event loop, before it sends the request.
    os.environ.setdefault("EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER", "true")
    litellm: Any = importlib.import_module("litellm")
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = True
    # LiteLLM treats zero retries as a missing argument, and would wait for a vendor's `Retry-After` in embeddings.
    litellm.DEFAULT_MAX_RETRIES = 0
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


async def load_litellm() -> Any:
    """Return LiteLLM, at once if it is loaded."""

    def import_with_lock() -> Any:
        with _loading:
            return _import_litellm()

    return _import_litellm() if _import_litellm.cache_info().currsize else await asyncio.to_thread(import_with_lock)


def build_arguments(vendor: Vendor, settings: VendorSettings, model: str, **more: object) -> dict[str, object]:
    """Return the arguments of every request to a vendor, and `more`, without those that are None. Retries are the
    platform's, not the library's.
    """
    given = {
        "model": f"{vendor.route}/{model}",
        "api_key": settings.api_key or (None if vendor.needs_key or vendor.openai_path is None else "none"),
        "api_base": settings.base_url,
        "api_version": settings.api_version,
        "num_retries": 0,
        "max_retries": 0,
        **more,
    }
    return {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value
        for name, value in given.items()
        if value is not None
    }


def translate_error(vendor: Vendor, settings: VendorSettings, error: Exception) -> ProviderError:
    """Translate a library error, with the API key removed from its message."""
    status = getattr(error, "status_code", None)
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    retryable = not isinstance(status, int) or status >= 500 or status in RETRYABLE
    return ProviderError(
        f"{vendor.title}: {settings.hide_key(message)}",
        code=str(status) if status else None,
        retryable=retryable,
        retry_after_seconds=_find_retry_after(error),
    )


def _find_retry_after(error: Exception) -> float | None:
    """Return the seconds of the vendor's `Retry-After`: LiteLLM keeps the headers of a refusal beside its error, in the
    error's response, or in those of the error that it wraps.
    """
    cause: BaseException | None = error
    while cause is not None:
        refusal = getattr(cause, "response", None)
        for holder, name in ((cause, "litellm_response_headers"), (cause, "headers"), (refusal, "headers")):
            headers = getattr(holder, name, None)
            if headers and (seconds := read_retry_after(headers.get("retry-after"))) is not None:
                return seconds
        cause = cause.__cause__ or cause.__context__
    return None


def calculate_cost(litellm: Any, vendor: Vendor, model: str, usage: Any) -> float | None:
    """Return the cost in US dollars from LiteLLM's price map; None if it lacks the model.

    `usage` is LiteLLM's `Usage`: cached prompt tokens cost a tenth to a half of others.
    """
    with suppress(Exception):  # an unknown model raises a plain Exception
        costs = litellm.cost_per_token(
            model=f"{vendor.route}/{model}",
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            usage_object=usage,
        )
        return float(sum(costs))
    return None
