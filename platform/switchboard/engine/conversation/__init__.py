"""The live call engine: audio in, turns, thinking, audio out."""
