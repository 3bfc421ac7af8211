"""The carrier Twilio."""

from switchboard.plugins import hookimpl

from switchboard_telephony_twilio.provider import TwilioTelephony


@hookimpl
def telephony_providers() -> list[type[TwilioTelephony]]:
    return [TwilioTelephony]
