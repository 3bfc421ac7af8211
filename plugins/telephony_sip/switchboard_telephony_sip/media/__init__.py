"""Audio of SIP calls: session descriptions, RTP, codecs, a jitter buffer, keys, and quality."""

from switchboard_telephony_sip.media.place import MediaPlace, NoFreePorts
from switchboard_telephony_sip.media.session import MediaSession
from switchboard_telephony_sip.media.session_description import MediaPreferences, NoCommonMedia

__all__ = ["MediaPlace", "MediaPreferences", "MediaSession", "NoCommonMedia", "NoFreePorts"]
