"""The carrier Plivo."""

from switchboard.plugin_sdk import hookimpl

from switchboard_telephony_plivo.provider import PlivoTelephony


@hookimpl
def telephony_providers() -> list[type[PlivoTelephony]]:
    return [PlivoTelephony]
