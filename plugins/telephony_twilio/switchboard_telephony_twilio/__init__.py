"""The carrier Twilio."""

from switchboard.plugin_sdk import hookimpl

from switchboard_telephony_twilio.provider import TwilioTelephony


@hookimpl
def telephony_providers() -> list[type[TwilioTelephony]]:
    return [TwilioTelephony]
