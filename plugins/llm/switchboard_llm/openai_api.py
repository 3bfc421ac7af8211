"""Addresses and refusals of servers with OpenAI's wire format."""

from http import HTTPStatus
from typing import Final

import aiohttp
import msgspec
from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.retries import read_retry_after

from switchboard_llm.vendor_api import RETRYABLE, VendorSettings
from switchboard_llm.vendors import Vendor

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
