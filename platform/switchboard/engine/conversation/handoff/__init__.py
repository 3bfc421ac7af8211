"""Handing a call over: supervision, takeover, transfers, voicemail."""
