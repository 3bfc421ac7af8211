"""Cost of storing recordings: megabytes and seconds of one core per call-hour, in each format of
`SWITCHBOARD_RECORDINGS_FORMAT`, and of the segments that are uploaded while the call goes on.

The call is a conversation of synthesized voices, as a carrier sends them (μ-law): each party speaks 40 % of the time,
over the faint noise of a line.
"""

import io
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import IO

import numpy as np
from switchboard.engine.conversation.media.recording import RATE
from switchboard.plugin_sdk.audio import Samples, decode_audio, encode_audio
from switchboard.resources.calls.recordings.file_formats import (
    BLOCK_FRAMES,
    FILE_FORMATS,
    Frames,
    RecordingReader,
    encode,
)
from switchboard_offline.espeak import speak_text

MINUTES = 60
SEGMENT_FRAMES = 30 * RATE
NOISE = 12
SENTENCES = (
    "Good morning, this is the bakery on the corner. How can I help you today?",
    "I would like to order a cake for Saturday, for about twelve people, with cherries if you have them.",
    "Of course. We have a black forest cake and a plain cherry cake. Which one do you prefer?",
    "The plain one, please, and could you write a name on it? It is for my grandmother.",
)


def synthesize_minute() -> Frames:
    """Build a minute of conversation: caller left, agent right."""
    noise = np.random.default_rng(1)
    frames = noise.normal(0, NOISE, (60 * RATE, 2)).astype(np.int16)
    position = 0
    while position < len(frames):
        for turn, text in enumerate(SENTENCES):
            voice = np.frombuffer(speak_text(text, sample_rate=RATE), dtype="<i2")[: max(0, len(frames) - position)]
            frames[position : position + len(voice), turn % 2] += voice
            position += int(len(voice) * 1.25)
    return np.stack([_pass_line(frames[:, side]) for side in (0, 1)], axis=1)


def _pass_line(samples: Samples) -> Samples:
    return decode_audio(encode_audio(np.ascontiguousarray(samples), "mulaw"), "mulaw")


def iterate_blocks(frames: Frames) -> Iterator[Frames]:
    """Yield an hour of blocks."""
    for _ in range(MINUTES):
        for begin in range(0, len(frames), BLOCK_FRAMES):
            yield frames[begin : begin + BLOCK_FRAMES]


def measure_seconds(work: Callable[[], object]) -> float:
    """Return the seconds of processor time that work takes."""
    started_at = time.process_time()
    work()
    return time.process_time() - started_at


def decode(file: IO[bytes]) -> None:
    """Decode a whole recording, as for a client that wants WAV."""
    audio = RecordingReader(file)
    for first in range(0, audio.frames, BLOCK_FRAMES):
        audio.read(first, BLOCK_FRAMES)


def encode_segments(frames: Frames) -> None:
    """Encode the segments of an hour."""
    for _ in range(MINUTES):
        for begin in range(0, len(frames), SEGMENT_FRAMES):
            encode([frames[begin : begin + SEGMENT_FRAMES]], io.BytesIO(), "flac")


def run() -> None:
    """Print the table."""
    frames = synthesize_minute()
    print("per call-hour      MB   encode, s   decode, s")
    for name in FILE_FORMATS:
        with tempfile.TemporaryFile() as file:
            encoding = measure_seconds(lambda file=file, name=name: encode(iterate_blocks(frames), file, name))
            size = file.seek(0, io.SEEK_END)
            file.seek(0)
            decoding = measure_seconds(lambda file=file: decode(file))
        print(f"{name:14} {size / 1e6:6.1f} {encoding:11.1f} {decoding:11.1f}")
    print(f"{'segments, flac':14}        {measure_seconds(lambda: encode_segments(frames)):11.1f}")
