"""Vendors, by the names that LiteLLM routes by."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor: its name, display name, LiteLLM prefix, default model, and whether it needs an API key.

    A capability without a model here is not offered. `embedding_route` is LiteLLM's prefix for embeddings if it
    differs. `keeps_schemas`: its models can be constrained to a JSON schema; others only to JSON. `strict_order`: its
    models, or its servers' chat templates, accept neither a later system message nor a user message right after a
    tool's.
    """

    name: str
    title: str
    route: str
    default_model: str
    needs_key: bool = True
    keeps_schemas: bool = True
    strict_order: bool = False
    embedding_model: str | None = None
    embedding_route: str | None = None
    transcription_model: str | None = None
    speech_model: str | None = None


VENDORS = (
    Vendor(
        "openai",
        "OpenAI",
        "openai",
        "gpt-4o-mini",
        embedding_model="text-embedding-3-small",
        transcription_model="gpt-4o-mini-transcribe",
        speech_model="gpt-4o-mini-tts",
    ),
    Vendor("anthropic", "Anthropic", "anthropic", "claude-haiku-4-5"),
    Vendor("gemini", "Google Gemini", "gemini", "gemini-2.5-flash", embedding_model="gemini-embedding-001"),
    Vendor(
        "groq",
        "Groq",
        "groq",
        "llama-3.3-70b-versatile",
        keeps_schemas=False,
        transcription_model="whisper-large-v3-turbo",
    ),
    Vendor("mistral", "Mistral", "mistral", "mistral-small-latest", strict_order=True, embedding_model="mistral-embed"),
    Vendor("cerebras", "Cerebras", "cerebras", "llama-3.3-70b"),
    Vendor("deepseek", "DeepSeek", "deepseek", "deepseek-chat", keeps_schemas=False),
    Vendor("xai", "xAI", "xai", "grok-3-mini"),
    Vendor("together", "Together AI", "together_ai", "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    Vendor("openrouter", "OpenRouter", "openrouter", "openai/gpt-4o-mini"),
    Vendor(
        "azure",
        "Azure OpenAI",
        "azure",
        "gpt-4o-mini",
        embedding_model="text-embedding-3-small",
        transcription_model="whisper",
    ),
    Vendor(
        "ollama",
        "Ollama",
        "ollama_chat",
        "llama3.2",
        needs_key=False,
        strict_order=True,
        embedding_model="nomic-embed-text",
        embedding_route="ollama",
    ),
    Vendor(
        "openai_compatible",
        "OpenAI-compatible server",
        "openai",
        "default",
        needs_key=False,
        strict_order=True,
        embedding_model="default",
        transcription_model="default",
        speech_model="default",
    ),
)
