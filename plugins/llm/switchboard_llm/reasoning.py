"""Reasoning before the answer, which a caller hears as silence: by default the least that is accepted."""

from typing import Final, Literal, TypeAlias

from switchboard_llm.model_map import ListedModel
from switchboard_llm.vendors import Effort, Vendor

EffortSetting: TypeAlias = Effort | Literal["least"]
EFFORTS: Final[tuple[Effort, ...]] = ("none", "minimal", "low", "medium", "high")


def choose_effort(vendor: Vendor, model: str, listed: ListedModel | None, setting: EffortSetting) -> Effort | None:
    """Return the effort to ask a model for; None to send none. `listed` is its entry in LiteLLM's map."""
    if "magistral" in model and setting == "least":
        return None  # It reasons only on request.
    if setting == "least":
        return _choose_least(vendor, model, listed)
    levels = listed.reasoning_effort_levels if listed is not None else ()
    if not levels or setting in levels:
        return setting
    # The next more, for models that know few: Mistral's know `none` and `high`.
    return next((effort for effort in EFFORTS[EFFORTS.index(setting) :] if effort in levels), "high")


def _choose_least(vendor: Vendor, model: str, listed: ListedModel | None) -> Effort | None:
    if "gpt-oss" in model:
        return "low"  # https://github.com/openai/gpt-oss: low, medium, or high.
    if listed is None:
        return vendor.unlisted_effort
    if not listed.supports_reasoning:
        return None
    if "none" in listed.reasoning_effort_levels or listed.supports_none_reasoning_effort:
        return "none"
    return "minimal" if listed.supports_minimal_reasoning_effort else vendor.least_effort


def build_effort(vendor: Vendor, effort: Effort | None) -> dict[str, object]:
    """Return the fields of a chat completion for an effort, as the vendor names them."""
    if effort is None:
        return {}
    if vendor.effort_field == "thinking":  # https://api-docs.deepseek.com/guides/thinking_mode
        return {"thinking": {"type": "disabled" if effort == "none" else "enabled"}}
    if vendor.effort_field == "reasoning.effort":  # https://openrouter.ai/docs/use-cases/reasoning-tokens
        return {"reasoning": {"effort": effort}}
    if vendor.effort_field == "reasoning.enabled" and effort == "none":  # https://docs.together.ai/docs/reasoning
        return {"reasoning": {"enabled": False}}
    return {"reasoning_effort": effort}
