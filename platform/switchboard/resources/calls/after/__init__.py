"""After a call: analysis, recordings, waveforms."""
