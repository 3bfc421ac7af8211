"""The model Smart Turn 3.2: an ONNX file in the wheel of pipecat-ai."""

from importlib.util import find_spec
from pathlib import Path

import onnxruntime

from switchboard_turn_smart.features import compute_features

MODEL_FILE = Path("audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx")


def find_model() -> Path | None:
    """Return the path of the model, without importing Pipecat; None if the model is not installed."""
    found = find_spec("pipecat")
    for folder in (found and found.submodule_search_locations) or ():
        if (path := Path(folder) / MODEL_FILE).is_file():
            return path
    return None


class SmartTurnModel:
    """The loaded model."""

    def __init__(self) -> None:
        onnxruntime.disable_telemetry_events()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(find_model()), options, providers=["CPUExecutionProvider"])

    def predict(self, audio: bytes) -> float:
        """Return the probability that a turn is complete, from its audio: 16-bit PCM at 8 kHz."""
        (probabilities,) = self._session.run(None, {"input_features": compute_features(audio)[None]})
        return float(probabilities[0, 0])
