"""Vendors, by the names that LiteLLM routes by."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor: its name, display name, LiteLLM prefix, and whether it needs an API key.

    `address` is the base of its API where settings name none, and `models_path` what follows it for a list of models
    that needs the key; `lists_aliases`: every name that a model answers to is in that list. `openai_path`
    precedes the paths of OpenAI's wire format; None: it has another format, which LiteLLM speaks. Where settings name
    an `api_version`, `dated_path` leads to them, with the model and the version. `key_header` carries the key; None: a
    bearer token.

    `embedding_route` is LiteLLM's prefix for embeddings if it differs. `keeps_schemas`: its models can be constrained
    to a JSON schema; others only to JSON. `system_first`: its models, or its servers' chat templates, accept no system
    message after others, or do not see its place. `answers_tools`: they accept no user message right after a tool's.
    `caches_marked`: it caches the part of a prompt that a request marks. `counts_tokens`: a stream reports the usage
    only if it is asked to (`stream_options`); Mistral reports it always
    (https://docs.mistral.ai/resources/release-note/2024-01-16-token-usage-in-streaming-requests), and answers 422 to a
    request with that field (https://github.com/openai/openai-agents-python/issues/442). `reports_cost`: the usage has
    the `cost` in US dollars. `fixes_temperature`: models that reason accept no
    temperature. `stores_answers`: it keeps requests and answers for its customers unless a request says `store: false`.
    `least_effort` is the least that its reasoning
    models accept where LiteLLM's map does not say it of the model, and `unlisted_effort` the least for models that are
    not in the map; None: no effort is sent.
    """

    name: str
    title: str
    route: str
    address: str | None = None
    models_path: str = "/models"
    lists_aliases: bool = True
    openai_path: str | None = ""
    dated_path: str | None = None
    key_header: str | None = None
    extra_headers: dict[str, str] = field(default_factory=dict)
    needs_key: bool = True
    keeps_schemas: bool = True
    system_first: bool = False
    answers_tools: bool = False
    caches_marked: bool = False
    counts_tokens: bool = True
    reports_cost: bool = False
    fixes_temperature: bool = False
    stores_answers: bool = False
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    effort_field: Literal["reasoning_effort", "reasoning.effort", "reasoning.enabled", "thinking"] = "reasoning_effort"
    least_effort: Effort | None = "none"
    unlisted_effort: Effort | None = None
    embedding_route: str | None = None


VENDORS = (
    Vendor(
        "openai",
        "OpenAI",
        "openai",
        "https://api.openai.com/v1",
        stores_answers=True,
        max_tokens_field="max_completion_tokens",
        fixes_temperature=True,
        least_effort="low",
    ),
    Vendor(
        "anthropic",
        "Anthropic",
        "anthropic",
        "https://api.anthropic.com",
        models_path="/v1/models?limit=1000",
        openai_path=None,
        key_header="x-api-key",
        extra_headers={"anthropic-version": "2023-06-01"},
        system_first=True,
        caches_marked=True,
    ),
    Vendor(
        "gemini",
        "Google Gemini",
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        models_path="/models?pageSize=1000",
        openai_path=None,
        key_header="x-goog-api-key",
        system_first=True,
    ),
    Vendor("groq", "Groq", "groq", "https://api.groq.com/openai/v1", keeps_schemas=False),
    Vendor(
        "mistral",
        "Mistral",
        "mistral",
        "https://api.mistral.ai/v1",
        system_first=True,
        answers_tools=True,
        counts_tokens=False,
    ),
    Vendor("cerebras", "Cerebras", "cerebras", "https://api.cerebras.ai/v1"),
    Vendor(
        "deepseek", "DeepSeek", "deepseek", "https://api.deepseek.com", keeps_schemas=False, effort_field="thinking"
    ),
    Vendor("xai", "xAI", "xai", "https://api.x.ai/v1", lists_aliases=False, least_effort=None),
    Vendor("together", "Together AI", "together_ai", "https://api.together.ai/v1", effort_field="reasoning.enabled"),
    Vendor("fireworks", "Fireworks AI", "fireworks_ai", "https://api.fireworks.ai/inference/v1", lists_aliases=False),
    # Its list of models is public, so that it says nothing of a key.
    Vendor(
        "openrouter",
        "OpenRouter",
        "openrouter",
        "https://openrouter.ai/api/v1",
        models_path="/key",
        effort_field="reasoning.effort",
        unlisted_effort="minimal",
        reports_cost=True,
    ),
    # Agents name a deployment, the list has the models that could be deployed.
    Vendor(
        "azure",
        "Azure OpenAI",
        "azure",
        models_path="/openai/v1/models",
        openai_path="/openai/v1",
        dated_path="/openai/deployments/{model}{path}?api-version={version}",
        max_tokens_field="max_completion_tokens",
        fixes_temperature=True,
        lists_aliases=False,
        key_header="api-key",
        least_effort="low",
    ),
    # Its data address follows from the region, and its credentials are AWS's.
    Vendor(
        "bedrock",
        "AWS Bedrock",
        "bedrock",
        models_path="/foundation-models",
        openai_path=None,
        needs_key=False,
        system_first=True,
        least_effort=None,
    ),
    Vendor("vertex", "Google Vertex AI", "vertex_ai", openai_path=None, needs_key=False, system_first=True),
    Vendor(
        "ollama",
        "Ollama",
        "ollama_chat",
        "http://localhost:11434",
        models_path="/api/tags",
        openai_path="/v1",
        needs_key=False,
        system_first=True,
        answers_tools=True,
        unlisted_effort="none",
        embedding_route="ollama",
    ),
    Vendor(
        "openai_compatible",
        "OpenAI-compatible server",
        "openai",
        needs_key=False,
        system_first=True,
        answers_tools=True,
    ),
)
