"""Turn detection by the caller's voice, with the model Smart Turn 3.2 on this machine."""

from switchboard.plugin_sdk import hookimpl

from switchboard_turn_smart.detector import SmartTurnDetector

PLUGIN_API_VERSION = 1


@hookimpl
def turn_detectors() -> list[type[SmartTurnDetector]]:
    """Provide the turn detector."""
    return [SmartTurnDetector]
