"""Default providers of an organization without any: those that need no account."""

from switchboard.engine.providers.configuration import ProviderSpec
from switchboard.plugin_sdk.registry import Capability, Registry

EMBEDDED = {
    Capability.TELEPHONY: "loopback",
    Capability.SPEECH_TO_TEXT: "pocketsphinx",
    Capability.TEXT_TO_SPEECH: "espeak",
    Capability.LLM: "scripted",
    Capability.EMBEDDING: "minilm",
    Capability.VECTOR_STORE: "lancedb",
}


def list_embedded_providers(registry: Registry) -> list[ProviderSpec]:
    """List the installed providers of the embedded default."""
    return [
        ProviderSpec(capability, name, {})
        for capability, name in EMBEDDED.items()
        if registry.find_provider_class(capability.base_class, name) is not None
    ]
