"""Language models and embeddings of every vendor that LiteLLM speaks."""

from switchboard.plugins import hookimpl

from switchboard_llm.embeddings import EMBEDDINGS, VendorEmbedding
from switchboard_llm.models import MODELS, VendorModel


@hookimpl
def llm_providers() -> list[type[VendorModel]]:
    return MODELS


@hookimpl
def embedding_providers() -> list[type[VendorEmbedding]]:
    return EMBEDDINGS
