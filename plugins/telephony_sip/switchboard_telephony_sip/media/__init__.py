"""Audio of SIP calls: session descriptions, RTP, codecs, a jitter buffer, keys, and quality."""
