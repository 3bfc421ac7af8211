"""Acme: a carrier. Replace the requests and callbacks with your vendor's."""

from collections.abc import Sequence

from switchboard.plugin_sdk import hookimpl

from switchboard_acme.provider import AcmeTelephony

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""


@hookimpl
def telephony_providers() -> Sequence[type[AcmeTelephony]]:
    return [AcmeTelephony]
