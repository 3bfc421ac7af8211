"""Speech: voice activity detection, speech input and output, text normalization."""
