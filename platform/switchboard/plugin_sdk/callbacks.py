"""Callbacks: requests that a vendor sends to an address of the platform's."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallbackRequest:
    """A request to an address that was given to a vendor.

    `url` is that public address (scheme and host from `PUBLIC_URL`, raw query string). Header names are lower-case.
    `path` is the part after the organization's own callback address (`""` or `"status"`).
    """

    method: str
    url: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class CallbackReply:
    """HTTP response to a callback."""

    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200


class InvalidCallback(Exception):
    """A callback is unsigned, altered, expired, or malformed.

    The platform responds with 403 and logs the message, which never contains a secret.
    """
