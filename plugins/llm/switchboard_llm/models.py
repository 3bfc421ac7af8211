"""Language models: one provider class per vendor, over the wire format that the vendor speaks."""

from typing import Final

from switchboard_llm.azure import AzureModel
from switchboard_llm.bedrock import BedrockModel
from switchboard_llm.chat_completions import ChatCompletionsModel
from switchboard_llm.litellm_model import LiteLLMModel
from switchboard_llm.vendor_api import create_vendor_class
from switchboard_llm.vendor_model import VendorModel
from switchboard_llm.vendors import VENDORS, Vendor
from switchboard_llm.vertex import VertexModel

CLOUDS: Final[dict[str, type[VendorModel]]] = {"azure": AzureModel, "bedrock": BedrockModel, "vertex": VertexModel}
"""Vendors with credentials of their own."""


def _choose_kind(vendor: Vendor) -> type[VendorModel]:
    return CLOUDS.get(vendor.name, LiteLLMModel if vendor.openai_path is None else ChatCompletionsModel)


MODELS = [create_vendor_class(_choose_kind(vendor), vendor, "Model", "chat") for vendor in VENDORS]
