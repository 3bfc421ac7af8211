"""Parameters of OAuth requests, from queries, forms, and JSON: text of the characters that RFC 6749 allows, each at
most once. The errors of the endpoints beyond Authlib's are here, too.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, unquote_plus

from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import InvalidRequestError

KNOWN = frozenset(
    {
        "client_id",
        "client_secret",
        "code",
        "code_challenge",
        "code_challenge_method",
        "code_verifier",
        "grant_type",
        "redirect_uri",
        "refresh_token",
        "response_type",
        "scope",
        "state",
        "token",
        "token_type_hint",
    }
)
MOST_BYTES = 16 * 1024
MOST_FIELDS = 50


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


class _JsonObject(list[tuple[str, object]]):
    """The members of a JSON object, duplicates included."""


def validate_parameters(pairs: Iterable[tuple[str, object]]) -> dict[str, str]:
    """Validate the parameters of an OAuth request; an empty one counts as missing, and unknown ones are ignored (RFC
    6749 section 3.2).

    Raises `InvalidRequestError` for a duplicate, and for text outside printable ASCII (appendix A).
    """
    given: dict[str, str] = {}
    for name, value in pairs:
        if name not in KNOWN or value is None:
            continue
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise InvalidRequestError(f"'{name}' is not text of printable ASCII characters.")
        if name in given:
            raise InvalidRequestError(f"'{name}' is given more than once.")
        given[name] = value
    return {name: value for name, value in given.items() if value.strip()}


def parse_body(raw: bytes, mimetype: str) -> dict[str, str]:
    """Parse the parameters of a JSON or form body. Raises `InvalidRequestError`."""
    if len(raw) > MOST_BYTES:
        raise InvalidRequestError("The body is too long.")
    if mimetype == "application/json" or mimetype.endswith("+json"):
        try:
            members = json.loads(raw, object_pairs_hook=_JsonObject)
        except (ValueError, RecursionError):
            raise InvalidRequestError("The body is not JSON.") from None
        if not isinstance(members, _JsonObject):
            raise InvalidRequestError("The body is not a JSON object.")
        return validate_parameters(members)
    if mimetype != "application/x-www-form-urlencoded":
        raise InvalidRequestError("Send the body as application/json or application/x-www-form-urlencoded.")
    try:
        return validate_parameters(parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise InvalidRequestError("The body is not a form.") from None


def get_client_credentials(authorization: str, given: dict[str, str]) -> tuple[str, str | None]:
    """Return the client's id and secret, from HTTP Basic or the body.

    Raises `ClientRefused` if there is none, and `InvalidRequestError` if there is more than one (RFC 6749 section 2.3).
    """
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        if "client_id" not in given:
            raise ClientRefused
        return given["client_id"], given.get("client_secret")
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode("ascii")
    except ValueError:
        raise ClientRefused from None
    # Both parts are form-encoded first (RFC 6749 section 2.3.1).
    client_id, _, secret = (unquote_plus(part) for part in text.partition(":"))
    if not client_id or not (client_id + secret).isascii() or not (client_id + secret).isprintable():
        raise ClientRefused
    if "client_secret" in given or given.get("client_id", client_id) != client_id:
        raise InvalidRequestError("The client authenticates in two ways at once.")
    return client_id, secret or None
