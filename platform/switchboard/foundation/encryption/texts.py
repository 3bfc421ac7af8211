"""The former name of `content.py`, for `resources/sms/sender.py`."""

from switchboard.foundation.encryption.content import UNREADABLE, is_unreadable

__all__ = ["UNREADABLE", "is_unreadable"]
