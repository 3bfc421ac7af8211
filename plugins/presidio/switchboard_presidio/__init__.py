"""Private data that a Presidio analyzer of your own finds: names, places, and more."""

from switchboard.plugin_sdk import hookimpl

from switchboard_presidio.detector import PresidioDetector

PLUGIN_API_VERSION = 1


@hookimpl
def private_data_detectors() -> list[type[PresidioDetector]]:
    """Provide the detector."""
    return [PresidioDetector]
