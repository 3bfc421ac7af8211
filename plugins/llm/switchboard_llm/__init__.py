"""Language models, embeddings, and basic speech of every vendor that LiteLLM supports."""

from switchboard.plugin_sdk import hookimpl

from switchboard_llm.embeddings import EMBEDDINGS, VendorEmbedding
from switchboard_llm.models import MODELS
from switchboard_llm.transcription import TRANSCRIBERS, VendorTranscriber
from switchboard_llm.vendor_model import VendorModel
from switchboard_llm.voices import VOICES, VendorVoice


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
