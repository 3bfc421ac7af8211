"""Frames of audio: 20 ms of mu-law at 8 kHz."""

from typing import Final

FRAME_SAMPLES: Final = 160
"""Samples, and bytes of mu-law, in a frame of 20 ms."""
SAMPLE_RATE: Final = 8000
FRAME_SECONDS: Final = FRAME_SAMPLES / SAMPLE_RATE
SILENT_FRAME: Final = b"\xff" * FRAME_SAMPLES
