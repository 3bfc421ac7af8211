"""Faults of a policy that only the installed plugins and presets show."""

from collections.abc import Collection

from switchboard.plugin_sdk import PrivateDataDetector
from switchboard.plugin_sdk.registry import ExtensionKind, InvalidSettings, Registry, parse_settings
from switchboard.resources.agents.redaction import list_kinds
from switchboard.resources.disclosure.presets import list_unknown_presets, load_presets
from switchboard.resources.identity.policy import Policy


def list_policy_faults(policy: Policy, registry: Registry, detectors: Collection[str]) -> list[tuple[str, str]]:
    """List the dotted key and the message of each fault. `detectors` are the detectors that have settings.

    A misspelled kind of private data would let private data through.
    """
    faults, known, chosen = [], list_kinds(registry), policy.redaction
    for key, kinds in (("kinds", chosen.kinds), ("visible_to_model", chosen.visible_to_model)):
        if unknown := sorted(set(kinds) - known.keys()):
            faults.append((f"redaction.{key}", f"unknown: {', '.join(unknown)}; known: {', '.join(known)}"))
    for detector in registry.list_extension_classes(PrivateDataDetector):
        if detector.name in chosen.kinds and detector.name not in detectors:
            try:
                parse_settings(detector.Settings, detector.initial_settings())
            except InvalidSettings:
                place = f"[{ExtensionKind.PRIVATE_DATA_DETECTOR.value}.{detector.name}]"
                faults.append(("redaction.kinds", f"{detector.name} needs settings in {place}"))
    if unknown := list_unknown_presets(policy.disclosure.presets):
        faults.append(("disclosure.presets", f"unknown: {', '.join(unknown)}; known: {', '.join(load_presets())}"))
    return faults
