"""The carrier Telnyx."""

from switchboard.plugin_sdk import hookimpl

from switchboard_telephony_telnyx.provider import TelnyxTelephony


@hookimpl
def telephony_providers() -> list[type[TelnyxTelephony]]:
    return [TelnyxTelephony]
