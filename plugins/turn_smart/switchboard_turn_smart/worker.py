"""Process beside a server that runs the model, so that the server's event loop and its calls never wait for it.

Requests come from standard input, and answers go to standard output. A request is the length of the audio in 4 bytes,
and the audio; its answer is a probability of 8 bytes. The process ends at the end of its input, and so with its server.
"""

import os
import struct
import sys
from typing import Final

LENGTH: Final = struct.Struct("<I")
PROBABILITY: Final = struct.Struct("<d")
NICENESS = 5
"""Calls have precedence over predictions, which they can do without."""


def main() -> None:
    """Answer requests until the input ends."""
    from switchboard_turn_smart.model import SmartTurnModel  # not in the server, which imports the constants

    os.nice(NICENESS)
    model = SmartTurnModel()
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while len(header := requests.read(LENGTH.size)) == LENGTH.size:
        (length,) = LENGTH.unpack(header)
        answers.write(PROBABILITY.pack(model.predict(requests.read(length))))
        answers.flush()


if __name__ == "__main__":
    main()
