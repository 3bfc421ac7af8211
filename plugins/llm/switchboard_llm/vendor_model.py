"""Base of a vendor's language models, whatever the wire format: settings, choice of the model, and check.

Reasoning before the answer is heard by a caller as silence, so the default is the least that is accepted.
"""

import asyncio
from collections.abc import Sequence
from typing import ClassVar, Final, Literal, TypeAlias

from pydantic import Field
from switchboard.plugin_sdk import ChatRequest, LLMProvider, ProviderError

from switchboard_llm.model_map import ListedModel, load_model_map
from switchboard_llm.vendor_api import VendorProvider, VendorSettings
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


class ModelSettings(VendorSettings):
    """Settings of a vendor's language models."""

    reasoning_effort: EffortSetting = Field(
        "least",
        description=(
            "Reasoning before an answer, which the other party hears as silence. `least` is the least that the model "
            "accepts."
        ),
    )
    no_retention: bool = Field(
        False,
        description="The vendor is asked not to store requests and answers. Refused if the vendor has no such switch.",
    )


class VendorModel(VendorProvider[ModelSettings], LLMProvider[ModelSettings]):
    """Models of one vendor."""

    Settings: ClassVar[type[ModelSettings]] = ModelSettings

    async def open(self) -> None:
        await super().open()
        self._require_retention_switch()
        await asyncio.to_thread(load_model_map)

    async def check(self) -> None:
        """Ask the vendor for its models, which costs nothing, needs the credentials, and shows whether it has the
        model.
        """
        self.require_credentials()
        self._require_retention_switch()
        await self.check_model(self.settings.model or self.default_model)

    async def list_models(self) -> Sequence[str]:
        """List the models of a server of your own; for a vendor, the chat models in LiteLLM's map."""
        if self.settings.base_url is not None:
            return sorted(offer.name for offer in await self.fetch_models())
        return sorted(set(load_model_map().list_chat_models(self.vendor.route)))

    async def check_model(self, model: str) -> None:
        """Raise `ProviderError` if the vendor refuses the credentials, or its list of models lacks the model. Some
        vendors list aliases with a date.
        """
        offered, name = [offer.name for offer in await self.fetch_models()], self.get_listed_name(model)
        if name == "default" or not offered or not self.vendor.lists_aliases:
            return
        if not any(offer == name or offer.startswith((f"{name}-", f"{name}:")) for offer in offered):
            raise ProviderError(f"{self.vendor.title} does not offer the model {name}", retryable=False)

    def _require_retention_switch(self) -> None:
        if self.settings.no_retention and not self.vendor.stores_answers:
            raise ProviderError(
                f"{self.vendor.title} has no switch for no_retention; agree on it with the vendor", retryable=False
            )

    def choose_model(self, request: ChatRequest) -> tuple[str, ListedModel | None]:
        """Return the model of a request, and its entry in LiteLLM's map."""
        model = request.model or self.settings.model or self.default_model
        return model, load_model_map().find(self.vendor.route, model)
