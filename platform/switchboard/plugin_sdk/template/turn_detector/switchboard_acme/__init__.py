"""Acme: a turn detector. Replace the request with your vendor's, or with a model in a process of its own."""

from base64 import b64encode
from collections.abc import Sequence

from switchboard.plugin_sdk import PossibleTurn, TurnDetector, TurnPrediction, hookimpl

from switchboard_acme.client import AcmeProvider, AcmeSettings

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""


class AcmeTurnDetector(AcmeProvider, TurnDetector[AcmeSettings]):
    """Acme's judgment of whether a caller has finished. The platform waits 150 milliseconds for it."""

    name = "acme"
    title = "Acme"
    Settings = AcmeSettings

    async def predict(self, turn: PossibleTurn) -> TurnPrediction:
        body = {"audio": b64encode(turn.audio).decode(), "text": turn.transcript, "language": turn.language}
        judged = await self._client.request("POST", "/turns", json=body)
        return TurnPrediction(judged["probability"])


@hookimpl
def turn_detectors() -> Sequence[type[AcmeTurnDetector]]:
    return [AcmeTurnDetector]
