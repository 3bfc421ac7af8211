"""Pipecat's default turn detection for `bench/turns`, run by a separate Python: Silero with its default parameters, and
Smart Turn with its own, as `UserTurnStrategies` has them if nothing is configured.

Standard input has the calls' audio as JSON: base64 of 16-bit PCM at 8 kHz. Standard output gets the moments at which
each call's turn was over, in seconds, and the processor seconds. A transcript is assumed to be there at once, and the
processor time of a prediction passes in the call.
"""

import asyncio
import base64
import json
import sys
import time
from types import SimpleNamespace

from loguru import logger
from pipecat.audio.turn.base_turn_analyzer import EndOfTurnState
from pipecat.audio.turn.smart_turn import base_smart_turn
from pipecat.audio.turn.smart_turn.local_smart_turn_v3 import LocalSmartTurnAnalyzerV3
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.audio.vad.vad_analyzer import VADParams, VADState

RATE = 8000
FRAME_SECONDS = 0.02
FRAME_BYTES = round(RATE * FRAME_SECONDS) * 2


async def find_turn_ends(audio: bytes) -> list[float]:
    """Return the moments at which the turn was over, in seconds."""
    now = 0.0
    base_smart_turn.time = SimpleNamespace(monotonic=lambda: now, perf_counter=time.perf_counter)
    voice, turn = SileroVADAnalyzer(sample_rate=RATE, params=VADParams()), LocalSmartTurnAnalyzerV3(sample_rate=RATE)
    voice.set_sample_rate(RATE)
    turn.set_sample_rate(RATE)
    turn.update_vad_start_secs(VADParams().start_secs)
    speaking, ends = False, []
    for at in range(0, len(audio) - FRAME_BYTES + 1, FRAME_BYTES):
        now += FRAME_SECONDS
        frame = audio[at : at + FRAME_BYTES]
        state = await voice.analyze_audio(frame)
        stopped = speaking and state is VADState.QUIET
        speaking = state is VADState.SPEAKING or (speaking and state is VADState.STOPPING)
        if turn.append_audio(frame, speaking) is EndOfTurnState.COMPLETE:
            ends.append(now)
        elif stopped:
            started_at = time.process_time()
            decision, _ = await turn.analyze_end_of_turn()
            if decision is EndOfTurnState.COMPLETE:
                ends.append(now + time.process_time() - started_at)
    return ends


async def main() -> None:
    calls = [base64.b64decode(call) for call in json.load(sys.stdin)]
    started_at = time.process_time()
    ends = [await find_turn_ends(call) for call in calls]
    json.dump({"ends": ends, "cpu_seconds": time.process_time() - started_at}, sys.stdout)


if __name__ == "__main__":
    logger.remove()
    asyncio.run(main())
