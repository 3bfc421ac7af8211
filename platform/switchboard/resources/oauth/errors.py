"""Errors of the OAuth endpoints beyond Authlib's, in the form of RFC 6749."""

from collections.abc import Mapping

from authlib.oauth2 import OAuth2Error


class ClientRefused(OAuth2Error):
    """401: no client, an unknown one, or a wrong secret; the message does not say which."""

    error = "invalid_client"
    description = "The client is unknown or does not authenticate as registered."
    status_code = 401

    def get_headers(self) -> list[tuple[str, str]]:
        return [*super().get_headers(), ("WWW-Authenticate", 'Basic realm="Switchboard", charset="UTF-8"')]


class TooManyRequests(OAuth2Error):
    """429, with `Retry-After`."""

    error = "temporarily_unavailable"
    description = "Too many requests. Wait for the time in Retry-After."
    status_code = 429

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__()
        self._headers = headers

    def get_headers(self) -> list[tuple[str, str]]:
        return [*super().get_headers(), *self._headers.items()]
