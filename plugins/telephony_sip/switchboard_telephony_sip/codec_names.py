"""Names of the audio codecs of a line, as session descriptions have them."""

from typing import Literal

CodecName = Literal["PCMU", "PCMA", "G722", "opus"]
