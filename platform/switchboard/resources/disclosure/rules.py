"""The rule of one call, from the settings of the agent and of its organization."""

from collections.abc import Iterable
from dataclasses import dataclass

from switchboard.engine.disclosure.disclosure import ConsentMode
from switchboard.engine.disclosure.settings import DisclosureSettings
from switchboard.resources.disclosure.presets import find_presets

STRICTNESS: tuple[ConsentMode, ...] = ("none", "notice", "ask")


@dataclass(frozen=True, slots=True)
class AppliedRule:
    """A rule, and what it comes from."""

    ai_notice: bool = False
    consent: ConsentMode = "none"
    names: tuple[str, ...] = ()


def find_rule(settings: DisclosureSettings, place: str | None) -> AppliedRule:
    """Return the rule for the place of a number: that of the region, the country, the presets, or the general one."""
    for code in (place, place.partition("-")[0]) if place is not None else ():
        if (own := settings.countries.get(code)) is not None:
            return AppliedRule(own.ai_notice, own.consent, (f"countries.{code}",))
    presets = find_presets(settings.presets, place) if place is not None else {}
    if presets:
        return combine_rules(
            AppliedRule(preset.ai_notice, preset.consent, (f"preset {name} of {preset.read_on}",))
            for name, preset in presets.items()
        )
    return AppliedRule(settings.ai_notice, settings.consent, ("default",))


def combine_rules(rules: Iterable[AppliedRule]) -> AppliedRule:
    """Return the stricter of both parts of several rules."""
    listed = list(rules)
    return AppliedRule(
        any(rule.ai_notice for rule in listed),
        max((rule.consent for rule in listed), key=STRICTNESS.index, default="none"),
        tuple(name for rule in listed for name in rule.names),
    )
