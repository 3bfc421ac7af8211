"""Audio: codecs, conversion, playout, recording."""
