"""The providers of an organization for which nobody has chosen any: those that need no account."""

from switchboard.plugins.registry import Capability, Registry
from switchboard.providers.configuration import Wanted

EMBEDDED = {
    Capability.TELEPHONY: "loopback",
    Capability.SPEECH_TO_TEXT: "pocketsphinx",
    Capability.TEXT_TO_SPEECH: "espeak",
    Capability.LLM: "scripted",
    Capability.EMBEDDING: "minilm",
    Capability.VECTOR_STORE: "lancedb",
}


def embedded_providers(registry: Registry) -> list[Wanted]:
    """Those of the embedded default that are installed."""
    return [Wanted(capability, name, {}) for capability, name in EMBEDDED.items() if registry.provider(capability, name) is not None]
