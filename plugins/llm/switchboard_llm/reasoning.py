"""Reasoning before the answer, which a caller hears as silence: by default the least that is accepted.

Vendors name it differently; LiteLLM translates its `reasoning_effort` to `thinking`, `thinkingConfig`, or `think`.
"""

from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from switchboard_llm.vendors import Effort, Vendor

EffortSetting: TypeAlias = Effort | Literal["least"]


class _ListedModel(BaseModel):
    """Entry of LiteLLM's map: what it says of reasoning."""

    supports_reasoning: bool | None = None
    reasoning_effort_levels: list[str] = []
    supports_none_reasoning_effort: bool | None = None
    supports_minimal_reasoning_effort: bool | None = None

    def accepts(self, effort: Effort) -> bool:
        """Tell whether the map says that the model accepts an effort."""
        return effort in self.reasoning_effort_levels or getattr(self, f"supports_{effort}_reasoning_effort", False)


def build_effort(litellm: Any, vendor: Vendor, model: str, setting: EffortSetting) -> dict[str, object]:
    """Return LiteLLM's arguments for the effort to ask a model for."""
    entry = litellm.model_cost.get(f"{vendor.route}/{model}", litellm.model_cost.get(model))
    effort = _choose_effort(vendor, model, None if entry is None else _ListedModel.model_validate(entry), setting)
    if effort is None:
        return {}
    # LiteLLM drops what it does not know of a model that is not in its map.
    allowed = {"allowed_openai_params": ["reasoning_effort"]} if entry is None else {}
    return {"reasoning_effort": effort, **allowed}


def _choose_effort(vendor: Vendor, model: str, listed: _ListedModel | None, setting: EffortSetting) -> Effort | None:
    if setting != "least":
        return setting
    if "magistral" in model:
        return None  # It reasons where LiteLLM adds the prompt for it, which any effort makes it do.
    if "gpt-oss" in model:
        return "low"  # https://github.com/openai/gpt-oss: low, medium, or high.
    if listed is None:
        return vendor.unlisted_effort
    if not listed.supports_reasoning:
        return None
    least: tuple[Effort, ...] = ("none", "minimal", "low")
    return next((effort for effort in least if listed.accepts(effort)), vendor.least_effort)
