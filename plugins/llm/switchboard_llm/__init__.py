"""Language models, embeddings, and basic speech of every vendor that LiteLLM supports."""

from typing import Final

from switchboard.plugin_sdk import hookimpl

from switchboard_llm.azure import AzureModel
from switchboard_llm.bedrock import BedrockModel
from switchboard_llm.chat_completions import ChatCompletionsModel
from switchboard_llm.embeddings import EMBEDDINGS, VendorEmbedding
from switchboard_llm.litellm_model import LiteLLMModel
from switchboard_llm.transcription import TRANSCRIBERS, VendorTranscriber
from switchboard_llm.vendor_api import create_vendor_class
from switchboard_llm.vendor_model import VendorModel
from switchboard_llm.vendors import VENDORS
from switchboard_llm.vertex import VertexModel
from switchboard_llm.voices import VOICES, VendorVoice

CLOUDS: Final[dict[str, type[VendorModel]]] = {"azure": AzureModel, "bedrock": BedrockModel, "vertex": VertexModel}
"""Vendors with credentials of their own."""
MODELS = [
    create_vendor_class(
        CLOUDS.get(vendor.name, LiteLLMModel if vendor.openai_path is None else ChatCompletionsModel),
        vendor,
        "Model",
        "chat",
    )
    for vendor in VENDORS
]
"""Language models: one provider class per vendor, over the wire format that the vendor speaks."""


@hookimpl
def llm_providers() -> list[type[VendorModel]]:
    return MODELS


@hookimpl
def embedding_providers() -> list[type[VendorEmbedding]]:
    return EMBEDDINGS


@hookimpl
def speech_to_text_providers() -> list[type[VendorTranscriber]]:
    return TRANSCRIBERS


@hookimpl
def text_to_speech_providers() -> list[type[VendorVoice]]:
    return VOICES
