"""Messages between a server and the process that runs the model.

A request is the length of the audio in 4 bytes, and the audio. Its answer is a probability of 8 bytes.
"""

import struct
from typing import Final

LENGTH: Final = struct.Struct("<I")
PROBABILITY: Final = struct.Struct("<d")
