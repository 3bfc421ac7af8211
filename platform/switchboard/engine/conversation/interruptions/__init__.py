"""Speech of the caller over the agent: backchannels, sounds, and interruptions."""
