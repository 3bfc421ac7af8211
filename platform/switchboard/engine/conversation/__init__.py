"""The live call engine: audio in, turn taking, responses, audio out."""
